import { statSync } from 'node:fs'
import { basename } from 'node:path'
import type { BatchLine } from '../../batch/input.ts'
import type { ParsedBatchLine } from '../../batch/parsed-line.ts'
import { isCutBatchResult, listAnswerWarnings } from '../../content/answer-checks.ts'
import { readPromptArguments } from '../../content/prompt.ts'
import type { Context } from '../../context.ts'
import { usageError } from '../../errors.ts'
import { endsInSeparator, toAbsolutePath } from '../../io/paths.ts'
import { addSavedDataToFailure } from '../../io/saved-data.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { BatchTextReader } from '../batch-text-reader.ts'
import { type BatchAnswerReader, createLineCaller, recordLineAnswer } from '../line-call.ts'
import { createImageReader, findCutAnswerFailure } from './answer.ts'
import { type ImageDestination, openImageDestination } from './destination.ts'
import { chooseImageModel, type ImageOptions } from './image.ts'
import { createImageName, readPromptOfBody } from './name.ts'

export async function createImageBatchMethods(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ImageOptions; words: string[] },
) {
  const { failOnCut = settings.values.failOnCut } = options
  const folder = readFolder(options, context.host.platform)
  const inputs = await readPromptArguments(context.input, options, words)
  const model = () => chooseImageModel(options, settings)
  const rawRules = { context, files: [] }

  async function openReader(line: BatchLine, input: ParsedBatchLine): Promise<BatchAnswerReader> {
    if (context.flags.raw) return new BatchTextReader(line, rawRules)
    const prompt = 'prompt' in input ? input.prompt : readPromptOfBody(line.call.body)
    const fileStem = `${String(line.index).padStart(6, '0')}-${createImageName(prompt)}`
    const replaces = options.force ?? false
    // The destination is checked before the request, because an answer that cannot be saved would cost money.
    const destination = await openImageDestination(context, { output: folder, fileStem, replaces })
    return createImageLineReader(context, line, { destination, failOnCut })
  }

  const shared = { endpoint: endpoints.image, options, inputs, model, openReader }
  return {
    ...(await createLineCaller(context, settings, shared)),
    isAccepted({ files, stopReason }: Record<string, unknown>): boolean {
      // An image without a stop reason may be whole, so the line is not requested again.
      if (failOnCut && isCutBatchResult({ stopReason: stopReason ?? undefined })) return false
      // A result of `chat` is not accepted. It has no files, but may have the hash of this line.
      return Array.isArray(files) && files.map(String).every((file) => imageExists(context, file, folder))
    },
  }
}

/**
 * Returns whether a saved image still exists. Also searches the folder of `-o`, because the earlier run may
 * have had another working folder.
 */
const imageExists = ({ host }: Context, file: string, folder = ''): boolean =>
  [file, folder + basename(file)].some((name) => isFilled(toAbsolutePath(host, name)))

function isFilled(path: string): boolean {
  try {
    const stat = statSync(path)
    return stat.isFile() && stat.size > 0
  } catch {
    return false
  }
}

function readFolder({ output }: ImageOptions, platform: NodeJS.Platform): string | undefined {
  if (output === undefined || endsInSeparator(output, platform)) return output
  throw usageError('--batch saves many images: -o must be a folder, with a / at its end')
}

function createImageLineReader(
  context: Context,
  line: BatchLine,
  { destination, failOnCut }: { destination: ImageDestination; failOnCut: boolean },
): BatchAnswerReader {
  const files: string[] = []
  const warnings: string[] = []
  const reading = createImageReader(context, {
    onSummary: (summary) => recordLineAnswer(context, line, summary),
    destination,
    warn: (message) => void warnings.push(message),
    onSaved: async (path) => void files.push(path),
  })
  const { links, texts } = reading.finder
  return {
    read: reading.read,
    addReceivedPart(cause) {
      const part = reading.saveReceivedPart()
      const text = texts.join('\n')
      const received = [...files, ...links].join(', ')
      if (!part && text === '' && received === '') return undefined
      const failure = addSavedDataToFailure(cause, part)
      const { message, details } = failure
      const { answer = text || undefined } = details
      return failure.with({ answer }, received === '' ? message : `${message}; received: ${received}`)
    },
    async finish(_, { end }) {
      const failure = await reading.finish()
      await reading.saveFoundImages()
      const problem = failure ?? (failOnCut ? findCutAnswerFailure(end, warnings) : undefined)
      if (problem) throw problem
      const text = texts.join('\n') || undefined
      return {
        content: { files, links: links.length > 0 ? links : undefined, text },
        warnings: [...listAnswerWarnings(end), ...warnings],
      }
    },
  }
}
