import { statSync } from 'node:fs'
import { basename } from 'node:path'
import type { BatchLine, BatchLineAnswer } from '../../batch/input.ts'
import type { ParsedBatchLine } from '../../batch/line-form.ts'
import { readArgumentInputs } from '../../content/prompt.ts'
import { readTokenUsage } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError, usageError } from '../../errors.ts'
import { endsInSeparator, toAbsolutePath } from '../../io/paths.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-forms.ts'
import { ImageFinder } from '../../wire/gateway/found-images.ts'
import { createErrorBodyFailure, isErrorEnvelope } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { type AnswerPartReader, ContinuedAnswer, joinResponseBodies } from '../continued-answer.ts'
import { createBatchLineSender } from '../line-body.ts'
import { createImageReader, readImagePart } from './answer.ts'
import { openImageDestination } from './destination.ts'
import { chooseImageModel, type ImageOptions } from './image.ts'
import { createImageName, readPromptOfBody } from './name.ts'
import { type ImageSaveOptions, saveImages } from './saving.ts'

export async function prepareImageLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ImageOptions; words: string[] },
) {
  const folder = readFolder(options, context.host.platform)
  const inputs = await readArgumentInputs(context.input, options, words)
  const model = () => chooseImageModel(options, settings)
  const common = { endpoint: endpoints.image, options, inputs, model }
  const caller = await createBatchLineSender(context, settings, common)
  const { context: lineContext } = caller
  return {
    ...caller,
    async prepare(input: ParsedBatchLine) {
      const request = await caller.build(input)
      const prompt = 'prompt' in input ? input.prompt : await readPromptOfBody(request.body)
      const answer = new ContinuedAnswer(request.body)
      let reader: ImageLineReader | undefined
      const warnings: string[] = []
      const warn = (message: string) => void warnings.push(message)
      return {
        ...request,
        async send(line: BatchLine, requireNext: () => void) {
          const fileStem = `${String(line.index).padStart(6, '0')}-${createImageName(prompt)}`
          const countAnswer = (summary: AnswerSummary) => caller.countAnswer(line, summary)
          // The destination is checked before the request, because an answer that cannot be saved would cost
          // money.
          const choose = () =>
            openImageDestination(lineContext, { output: folder, fileStem, replaces: options.force ?? false })
          reader ??= context.flags.raw
            ? openRawReader(lineContext, countAnswer)
            : openReader(lineContext, { destination: await choose(), warn, countAnswer })
          const { addReceived } = reader
          const reading = { model: request.model, line, answer, reader, addReceived, requireNext }
          const { value, ...facts } = await caller.receive(reading)
          const warning = [facts.warning ?? [], warnings].flat().join('; ') || undefined
          return { ...facts, warning, content: value }
        },
        addReceived: (failure: CliError) => reader?.addReceived(failure),
      }
    },
    isAccepted: ({ files }: Record<string, unknown>) =>
      !Array.isArray(files) || files.map(String).every((file) => imageExists(context, file, folder)),
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

interface ImageLineReader extends AnswerPartReader<BatchLineAnswer['content']> {
  addReceived(failure: CliError): CliError | undefined
}

type CountAnswer = (summary: AnswerSummary) => void

function openReader(
  context: Context,
  { countAnswer, ...saving }: Pick<ImageSaveOptions, 'destination' | 'warn'> & { countAnswer: CountAnswer },
): ImageLineReader {
  const files: string[] = []
  const onSaved = async (path: string) => void files.push(path)
  const reading = createImageReader(context, {
    onSummary: countAnswer,
    save: (images, earlier) => saveImages(context, images, { ...saving, earlier, onSaved }),
    keepsConnection: true,
  })
  const { links, texts } = reading.findings
  const addSaved = (failure: CliError) => withSavedFiles(failure, [...files, ...links])
  return {
    read: reading.read,
    addReceived(failure) {
      const text = texts.join('\n')
      if (text === '' && files.length === 0 && links.length === 0) return undefined
      const { answer = text === '' ? undefined : text } = failure.details
      return addSaved(answer === undefined ? failure : failure.with({ answer }))
    },
    async finish() {
      const failure = await reading.finish()
      await reading.saveFound().catch((error: unknown) => {
        throw error instanceof CliError ? addSaved(error) : error
      })
      if (failure) throw addSaved(failure)
      return {
        files,
        links: links.length > 0 ? links : undefined,
        text: texts.join('\n') || undefined,
      }
    },
  }
}

const withSavedFiles = (failure: CliError, filesAndLinks: string[]): CliError =>
  filesAndLinks.length === 0
    ? failure
    : new CliError(failure.kind, `${failure.message}; received: ${filesAndLinks.join(', ')}`, failure.details)

/**
 * Returns a reader that saves no images. The content is the response, or a JSON list of several responses.
 */
function openRawReader(context: Context, countAnswer: CountAnswer): ImageLineReader {
  const bodies: string[] = []
  let received = ''
  return {
    addReceived(failure) {
      // The failure's details already contain the body of an error response, so the body is not added again.
      const isKnown = failure.details.body !== undefined && bodies.length === 0
      const all = [...bodies, received].filter((body) => body !== '')
      return isKnown || all.length === 0 ? undefined : failure.with({ answer: all.join('\n') })
    },
    async read(response) {
      const part = await readImagePart(context, response, new ImageFinder(), { keepsConnection: true })
      const { summary, bytes, failure } = part
      const contentType = response.headers['content-type'] ?? ''
      received = new TextDecoder().decode(bytes)
      try {
        if (failure) throw failure
        const value = parseReceivedBody(received, contentType)
        if (isErrorEnvelope(value)) throw createErrorBodyFailure(value)
      } catch (error) {
        if (readTokenUsage(summary)) countAnswer(summary)
        throw error
      }
      countAnswer(summary)
      bodies.push(received)
      received = ''
      return part
    },
    finish: async () => ({ response: joinResponseBodies(bodies) }),
  }
}
