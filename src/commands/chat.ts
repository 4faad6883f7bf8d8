import type { Command } from 'commander'
import { type Companions, FileFlag, parseRetries, TextFlag } from '../argv/flags.ts'
import { type BatchOptions, batchCompanions, declareBatchFlags } from '../batch/flags.ts'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import type { ChatOptions } from '../gateway/chat/chat.ts'
import { declarePromptFlags } from '../gateway/prompt-flags.ts'
import { documentedModels } from '../wire/gateway/models.ts'

export function declare(command: Command): void {
  command
    .argument('[prompt...]', 'what to ask; piped text comes after it, or in place of -')
    .option('-m, --model <name>', 'the model (default: chatModel, else alpha-2.5-pro)')
    .addOption(new TextFlag('--system <text>', 'system instruction, or @FILE'))
  declarePromptFlags(command, 'add a text, image, audio, video or PDF file')
  command
    .option('--stream', 'print the answer as it arrives')
    .option('--no-stream', 'wait for the whole answer')
    .option('--fail-on-cut', 'exit 8 if the answer is cut or stopped')
    .addOption(
      new FileFlag('-o, --output <file>', 'write the complete answer to a file, replacing it', 'writes'),
    )
    .addOption(new FileFlag('--thread <file>', 'keep the conversation, with --system, in a file', 'keeps'))
    .addOption(new FileFlag('--schema <file>', 'print JSON that fits this JSON Schema, or exit 8'))
    .option('--schema-retries <n>', 'ask again up to N times if the answer does not fit', parseRetries)
    .option('--markdown', 'lay out Markdown (default: on a terminal)')
    .option('--no-markdown', 'print the text as it is')
    .option('--usage', 'show model, tokens and seconds also in a pipe')
  declareBatchFlags(command)
}

export const notes = [
  `Documented models: ${documentedModels.join(', ')}. Their first word is the setting family (default alpha). Any other name is sent as it is.`,
  'With --thread or --report parley reads an answer to its end, even if the reader of stdout has gone (| head -1).',
]

export const companions: Companions = {
  ...batchCompanions,
  '--schema-retries': { needs: ['--schema'] },
  '--stream': { bars: ['--batch'] },
  '--markdown': { bars: ['--batch', '--raw', '--schema'] },
}

export const examples = [
  "parley chat --profile demo 'Say hello'",
  "git diff | parley chat 'Review this:' --stream",
  "parley chat -f notes.md 'What is missing?'",
  "parley chat --thread talk.json 'And then?'",
]

/** The work is loaded only here: help and usage errors do not need it. */
export async function run(
  context: Context,
  options: ChatOptions & BatchOptions,
  words: string[],
): Promise<void> {
  if (options.batch === undefined) {
    const { ask } = await import('../gateway/chat/chat.ts')
    return ask(context, options, words)
  }
  if (options.thread !== undefined) throw usage('--thread keeps one conversation, --batch has many requests')
  if (options.output !== undefined)
    throw usage('-o is for one answer: --batch prints results, --results FILE keeps them')
  const { answerBatch } = await import('../batch/batch.ts')
  const { readChatLines } = await import('../gateway/chat/lines.ts')
  await answerBatch(context, options, (told, settings) => readChatLines(told, settings, { options, words }))
}
