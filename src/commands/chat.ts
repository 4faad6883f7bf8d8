import type { Command } from 'commander'
import type { ChatOptions } from '../chat/ask.ts'
import type { Context } from '../context.ts'
import { addValue, parseCount, parseNumber } from '../flag-values.ts'
import { documentedModels } from '../wire/model/models.ts'

export function declare(command: Command): void {
  command
    .argument('[prompt...]', 'what to ask; piped text comes after it, or where - stands')
    .option('-m, --model <name>', 'the model (default: the setting chatModel, else {family}-2.5-pro)')
    .option('--system <text>', 'system instruction, or @FILE')
    .option('--temperature <n>', 'sampling temperature', parseNumber)
    .option('--max-output-tokens <n>', 'longest answer', parseCount)
    .option('-i, --input <file>', 'a whole request body, from a file or - for stdin')
    .option(
      '-f, --file <file>',
      'add a text, image, audio, video or PDF file, or - for stdin, repeatable',
      addValue,
    )
    .option('--set <path=value>', 'set any field of the body, repeatable', addValue)
    .option('--stream', 'print the answer as it comes')
    .option('--no-stream', 'wait for the whole answer')
    .option('--fail-on-cut', 'exit 8 where the answer is cut, stopped or empty')
    .option('-o, --output <file>', 'write the answer to a file once it is whole, replacing what is there')
    .option('--thread <file>', 'keep the conversation in a file')
    .option('--markdown', 'lay out Markdown, in a pipe too (on a terminal it is the default)')
    .option('--no-markdown', 'print the text as it is')
    .option('--usage', 'show model, tokens and seconds in a pipe, too')
}

export const notes = [
  `Documented models: ${documentedModels.join(', ')}. Any other name is passed on. {family} is the setting family, the vendor word in the gateway's paths and model names: alpha, where nothing else is set.`,
]

export const examples = [
  "parley chat --profile demo 'Say hello'",
  "git diff | parley chat 'Review this:' --stream",
  "parley chat -f notes.md 'What is missing?'",
  "parley chat --thread talk.json 'And then?'",
]

/** Asking loads what help and a wrong flag can do without. */
export async function run(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const { ask } = await import('../chat/ask.ts')
  return ask(context, options, words)
}
