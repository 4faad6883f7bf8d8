import type { Command } from 'commander'
import type { Context } from '../context.ts'
import { collect, parseCount, temperatureFlag } from './flags.ts'
import type { PromptOptions } from './prompt.ts'

export interface ChatOptions extends PromptOptions {
  model?: string
  system?: string
  temperature?: number
  maxOutputTokens?: number
  set?: string[]
  stream?: boolean
  failOnCut?: boolean
  output?: string
  thread?: string
  usage?: boolean
}

/** The documented models, by what follows the family's name (gateway, 1). */
const models = ['2.5-pro', '3-pro-preview', '3.1-pro-preview'] as const

export function declare(command: Command): void {
  command
    .argument('[prompt...]', 'what to ask; the word - stands for the text on stdin')
    .option('-m, --model <name>', 'the model (default: the setting chatModel, else {family}-2.5-pro)')
    .option('--system <text>', 'what the model is to keep to, as systemInstruction; @FILE reads a file')
    .addOption(temperatureFlag())
    .option('--max-output-tokens <n>', 'longest answer', parseCount)
    .option('-i, --input <file>', 'a whole request body, from a file or - for stdin')
    .option('-f, --file <file>', 'add a text, image, audio, video or PDF file, repeatable', collect)
    .option('--set <path=value>', 'set any field of the body, repeatable', collect)
    .option('--stream', 'print the answer as it comes')
    .option('--no-stream', 'wait for the whole answer')
    .option('--fail-on-cut', 'exit 8 where the answer was cut or stopped, or has no text')
    .option('-o, --output <file>', 'write the answer to a file, once it is whole')
    .option('--thread <file>', 'keep the conversation in a file')
    .option('--usage', 'show model, tokens and seconds also when stderr is no terminal')
    .addHelpText(
      'after',
      `
Models that are documented: ${models.map((model) => `{family}-${model}`).join(', ')}. Any other name is passed on.
`,
    )
}

/** Asking loads what help and a wrong flag can do without. */
export async function run(context: Context, options: ChatOptions, words: string[]): Promise<void> {
  const { ask } = await import('./chat/ask.ts')
  return ask(context, options, words)
}
