import { Argument, Option } from 'commander'
import { FileFlag, parseWholeNumber, TextFlag } from '../argv/flags.ts'
import { type BatchOptions, batchFlagRules, createBatchFlags } from '../batch/flags.ts'
import type { ChatOptions } from '../gateway/chat/chat.ts'
import { createPromptFlags } from '../gateway/prompt-flags.ts'
import { documentedModels } from '../wire/gateway/models.ts'
import type { CommandModule } from './command.ts'

const notSpecified = '(undocumented by the gateway)'

export default {
  parameters: () => [
    new Argument('[prompt...]', "the prompt; stdin is appended, or inserted at '-'"),
    new Option('-m, --model <name>', 'model (default: chatModel setting, or alpha-2.5-pro)'),
    new TextFlag('--system <text>', `instructions, or @FILE ${notSpecified}`),
    ...createPromptFlags('add a text, image, audio, video or PDF file', ` ${notSpecified}`),
    new Option('--stream', 'print the answer as it arrives'),
    new Option('--no-stream', 'wait for the whole answer'),
    new Option('--fail-on-cut', 'exit 8 if the answer was cut off or filtered'),
    new Option('--no-fail-on-cut', 'only warn about such an answer'),
    new FileFlag('-o, --output <file>', 'write the whole answer to a file, replacing it', 'writes'),
    new FileFlag('--thread <file>', 'start or continue a conversation, with one model', 'updates'),
    new FileFlag('--schema <file>', 'print JSON that matches this JSON Schema, or exit 8'),
    new Option('--schema-retries <n>', 'retry up to N times if the answer does not match').argParser(
      parseWholeNumber,
    ),
    new Option('--markdown', 'render Markdown (default: on a terminal)'),
    new Option('--no-markdown', 'print the text verbatim'),
    new Option('--usage', 'show model, tokens and seconds, even in a pipe'),
    ...createBatchFlags(),
  ],

  notes: [
    `Documented models: ${documentedModels.join(', ')}. The names start with the value of the setting "family" (default alpha). parley also accepts any other name.`,
    'A long answer can take several requests (finish reason CONTINUATION). Each request bills the prompt. parley sends up to 64 requests and sums their usage.',
    'With --thread or --report, parley reads the whole answer even if the reader of stdout exits early (| head -1).',
  ],

  flagRules: {
    ...batchFlagRules,
    '--output': { excludes: ['--batch'], advice: 'use --results FILE' },
    '--thread': { excludes: ['--batch'] },
    '--schema': { excludes: ['--raw'] },
    '--schema-retries': { requires: ['--schema'] },
    '--stream': { excludes: ['--batch'] },
    '--markdown': { excludes: ['--batch', '--raw', '--schema'] },
  },

  examples: [
    "parley chat --profile demo 'Say hello'",
    "git diff | parley chat 'Review this:' --stream",
    "parley chat -f notes.md 'What is missing?'",
    "parley chat --thread talk.json 'And then?'",
  ],

  /** The code for requests is imported here, so that help and usage errors start fast. */
  async run(context, options: ChatOptions & BatchOptions, words) {
    if (options.batch === undefined) {
      const { runChat } = await import('../gateway/chat/chat.ts')
      return runChat(context, options, words)
    }
    const { runBatch } = await import('../batch/batch.ts')
    const { createChatBatchMethods } = await import('../gateway/chat/lines.ts')
    await runBatch(context, options, (batchContext, settings) =>
      createChatBatchMethods(batchContext, settings, { options, words }),
    )
  },
} satisfies CommandModule
