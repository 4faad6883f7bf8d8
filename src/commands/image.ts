import { Argument, Option } from 'commander'
import { FileFlag } from '../argv/flags.ts'
import { type BatchOptions, batchFlagRules, createBatchFlags } from '../batch/flags.ts'
import type { ImageOptions } from '../gateway/image/image.ts'
import { createPromptFlags } from '../gateway/prompt-flags.ts'
import type { CommandModule } from './command.ts'

export default {
  parameters: () => [
    new Argument('[prompt...]', "the prompt; stdin is appended, or inserted at '-'"),
    new Option('-m, --model <name>', 'model (default: imageModel setting)'),
    ...createPromptFlags('add a reference image or a text'),
    new FileFlag('-o, --output <file>', 'a file, a folder (ending in /), or - for stdout', 'writes'),
    new Option('--force', 'replace an existing file (further images of an answer always get new names)'),
    new Option('--fail-on-cut', 'exit 8 if the answer or an image was cut off or filtered; keep the images'),
    new Option('--no-fail-on-cut', 'only warn about such an answer or image'),
    new Option('--preview', 'show the images on a terminal'),
    new Option('--no-preview', 'do not show the images'),
    new Option('--usage', 'show model, tokens and seconds, even in a pipe'),
    ...createBatchFlags(),
  ],

  notes: [
    "parley names files after the prompt. If a file of that name exists, parley adds the next free number, or with --force replaces the file. Without --force, -o FILE fails with exit 11 if the file exists. Further images of the answer always get free numbers, even with --force. There is no default model: choose one with -m or 'parley config set imageModel NAME'.",
  ],

  flagRules: {
    ...batchFlagRules,
    '--output': { excludes: ['--raw'] },
    '--fail-on-cut': { excludes: ['--raw'] },
    '--force': { excludes: ['--raw'] },
    '--preview': { excludes: ['--raw', '--batch'] },
  },

  examples: [
    "parley image --profile demo 'a red fox'",
    "parley image -f a-red-fox.png 'the same in snow' -o snow.png",
    "parley image 'a red fox' -o pics/",
    `parley image 'a fox' --set 'generationConfig.imageConfig.aspectRatio="16:9"'`,
  ],

  async run(context, options: ImageOptions & BatchOptions, words) {
    if (options.batch === undefined) {
      const { runImage } = await import('../gateway/image/image.ts')
      return runImage(context, options, words)
    }
    const { runBatch } = await import('../batch/batch.ts')
    const { createImageBatchMethods } = await import('../gateway/image/lines.ts')
    await runBatch(context, options, (batchContext, settings) =>
      createImageBatchMethods(batchContext, settings, { options, words }),
    )
  },
} satisfies CommandModule
