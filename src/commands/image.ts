import type { Command } from 'commander'
import { type Companions, FileFlag } from '../argv/flags.ts'
import { type BatchOptions, batchCompanions, declareBatchFlags } from '../batch/flags.ts'
import type { Context } from '../context.ts'
import type { ImageOptions } from '../gateway/image/image.ts'
import { declarePromptFlags } from '../gateway/prompt-flags.ts'

export function declare(command: Command): void {
  command
    .argument('[prompt...]', 'what to draw; piped text comes after it, or in place of -')
    .option('-m, --model <name>', 'the model (default: the setting imageModel)')
  declarePromptFlags(command, 'add a reference image or a text')
  command
    .addOption(
      new FileFlag('-o, --output <file>', 'a file, a folder (ending in /), or - for stdout', 'writes'),
    )
    .option('--force', 'replace files that exist')
    .option('--preview', 'show the images, on a terminal')
    .option('--no-preview', 'do not show them')
    .option('--usage', 'show model, tokens and seconds also in a pipe')
  declareBatchFlags(command)
}

export const notes = [
  "Files are named after the prompt, and no file is overwritten: the next free number is added to the name. There is no default model: choose one with -m or 'parley config set imageModel NAME'.",
]

const saving = { bars: ['--raw'] }

export const companions: Companions = {
  ...batchCompanions,
  '--output': saving,
  '--force': saving,
  '--preview': { bars: ['--raw', '--batch'] },
}

export const examples = [
  "parley image --profile demo 'a red fox'",
  "parley image -f a-red-fox.png 'the same in snow' -o snow.png",
  "parley image 'a red fox' -o pics/",
  `parley image 'a fox' --set 'generationConfig.imageConfig.aspectRatio="16:9"'`,
]

export async function run(
  context: Context,
  options: ImageOptions & BatchOptions,
  words: string[],
): Promise<void> {
  if (options.batch === undefined) {
    const { makeImages } = await import('../gateway/image/image.ts')
    return makeImages(context, options, words)
  }
  const { answerBatch } = await import('../batch/batch.ts')
  const { readImageLines } = await import('../gateway/image/lines.ts')
  await answerBatch(context, options, (told, settings) => readImageLines(told, settings, { options, words }))
}
