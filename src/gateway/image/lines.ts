import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { listWarnings } from '../../content/footer.ts'
import { readTokenUsage } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError, usageError } from '../../errors.ts'
import { absolutePath, isFolderName } from '../../io/paths.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { decodeBodyText } from '../../wire/charset.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-forms.ts'
import { ImageFinder } from '../../wire/gateway/found-images.ts'
import { isErrorEnvelope, readFailureInBody } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import {
  type AnswerCallbacks,
  createLineSender,
  type LineContext,
  type LineInput,
  type RequireContinuation,
} from '../line-body.ts'
import { joinResponses, LongAnswer, type PartReader } from '../long-answer.ts'
import { openImageAnswer, readPart } from './answer.ts'
import { chooseDestination, type Destination } from './destination.ts'
import { chooseModel, type ImageOptions } from './image.ts'
import { createFileName, readPromptOfBody } from './name.ts'
import { saveImages } from './saving.ts'

/** Prepares to send an image request for each line of a batch. Throws a usage error. */
export async function prepareImageLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ImageOptions; words: string[] },
) {
  const folder = readFolder(options, context.host.platform)
  const model = () => chooseModel(options, settings)
  const common = { endpoint: endpoints.image, options, words, model }
  const caller = await createLineSender(context, settings, common)
  const { context: quiet } = caller
  return {
    ...caller,
    async prepare(question: LineInput) {
      const request = await caller.build(question)
      const prompt = 'prompt' in question ? question.prompt : await readPromptOfBody(request.body)
      const answer = new LongAnswer(request.body)
      let reader: LineReader | undefined
      return {
        ...request,
        async send(line: LineContext, requireNext: RequireContinuation) {
          const name = `${String(line.index).padStart(6, '0')}-${createFileName(prompt)}`
          const events = caller.createEvents(line)
          // The destination is checked before sending, because the answer is paid for.
          const choose = () =>
            chooseDestination(quiet, { output: folder, name, replaces: options.force ?? false })
          reader ??= context.flags.raw
            ? openRawReader(quiet, answer, events)
            : openReader(quiet, answer, { destination: await choose(), ...events })
          const { read, finish, addReceived } = reader
          return answer
            .receive(
              caller.createSend(request.model, line),
              { read, finish },
              { requireNext, isRepeated: true },
            )
            .catch((error: unknown) => {
              if (!(error instanceof CliError) || answer.isWhole) throw error
              throw addReceived(error) ?? error
            })
        },
        addReceived: (failure: CliError) => reader?.addReceived(failure),
      }
    },
    hasFiles: ({ files }: Record<string, unknown>) =>
      !Array.isArray(files) || files.map(String).every((file) => isImageThere(context, file, folder)),
  }
}

/** Returns true if the image's file exists. An earlier run may have used another working folder. */
const isImageThere = ({ host }: Context, file: string, folder = ''): boolean =>
  [file, folder + basename(file)].some((name) => isFilled(absolutePath(host, name)))

function isFilled(path: string): boolean {
  try {
    const stat = statSync(path)
    return stat.isFile() && stat.size > 0
  } catch {
    return false
  }
}

/** Returns the folder of `-o`. Throws a usage error if it is a file. */
function readFolder({ output }: ImageOptions, platform: NodeJS.Platform): string | undefined {
  if (output === undefined || isFolderName(output, platform)) return output
  throw usageError('--batch saves many images: -o must be a folder, with a / at its end')
}

/** Result of a line. */
interface ImageLineAnswer extends Pick<AnswerSummary, 'model' | 'stopReason'> {
  warning?: string | undefined
  content: { files: string[]; links: string[] | undefined; text: string | undefined } | { response: string }
}

interface LineReader extends PartReader<ImageLineAnswer> {
  /** Adds the received content to the failure of a part. Returns `undefined` if nothing was received. */
  addReceived(failure: CliError): CliError | undefined
}

/** Reads an answer and saves the images of each part. */
function openReader(
  context: Context,
  answer: LongAnswer,
  { destination, onSummary, onEnd }: AnswerCallbacks & { destination: Destination },
): LineReader {
  const files: string[] = []
  const onSaved = async (path: string) => void files.push(path)
  const reading = openImageAnswer(context, {
    onSummary,
    save: (images, earlier) => saveImages(context, images, { destination, earlier, onSaved }),
    keepsConnection: true,
  })
  const { links, texts } = reading.findings
  const addPlaces = (failure: CliError) => withSavedFiles(failure, [...files, ...links])
  return {
    read: reading.read,
    addReceived(failure) {
      const text = texts.join('\n')
      if (text === '' && files.length === 0 && links.length === 0) return undefined
      const { answer: own = text === '' ? undefined : text } = failure.details
      return addPlaces(own === undefined ? failure : failure.with({ answer: own }))
    },
    async finish() {
      const { failure, ...end } = await reading.finish()
      onEnd(end)
      await reading.saveFound().catch((error: unknown) => {
        throw error instanceof CliError ? addPlaces(error) : error
      })
      if (failure) throw addPlaces(failure)
      const text = texts.join('\n')
      const content = {
        files,
        links: links.length > 0 ? links : undefined,
        text: text === '' ? undefined : text,
      }
      const { model, stopReason } = answer.summary
      const warning = listWarnings({ ...end, summary: answer.summary }).join('; ') || undefined
      return { content, model, stopReason, warning }
    },
  }
}

/** Adds the saved files and links of an incomplete answer to its failure. */
const withSavedFiles = (failure: CliError, places: string[]): CliError =>
  places.length === 0
    ? failure
    : new CliError(failure.kind, `${failure.message}; received: ${places.join(', ')}`, failure.details)

/** Reads an answer for `--raw`, without saving images. Several responses become a list. */
function openRawReader(
  context: Context,
  answer: LongAnswer,
  { onSummary, onEnd }: AnswerCallbacks,
): LineReader {
  const bodies: string[] = []
  let isAssumed = false
  let isDamaged = false
  return {
    addReceived(failure) {
      const { answer: own = bodies.join('\n') } = failure.details
      return answer.isBegun ? failure.with({ answer: own }) : undefined
    },
    /** Throws a `CliError` with the received bodies if the answer is incomplete. */
    async read(response) {
      const part = await readPart(context, response, new ImageFinder(), { keepsConnection: true })
      const { summary, bytes, failure } = part
      isAssumed ||= part.isAssumed
      isDamaged ||= part.isDamaged
      const contentType = response.headers['content-type'] ?? ''
      const text = decodeBodyText(bytes, contentType)
      bodies.push(text)
      try {
        if (failure) throw failure
        const value = parseReceivedBody(text, contentType)
        if (isErrorEnvelope(value)) throw readFailureInBody(value)
        onSummary(summary)
      } catch (error) {
        if (readTokenUsage(summary)) onSummary(summary)
        const isOwn = error instanceof CliError && (error.details.body === undefined || answer.isBegun)
        throw isOwn ? error.with({ answer: bodies.join('\n') }) : error
      }
      return part
    },
    async finish() {
      const end = { summary: answer.summary, isAssumed, isDamaged }
      onEnd(end)
      const warning = listWarnings(end).join('; ') || undefined
      return { content: { response: joinResponses(bodies) }, warning }
    },
  }
}
