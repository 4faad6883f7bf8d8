import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { usageOf } from '../../content/tokens.ts'
import type { Context } from '../../context.ts'
import { CliError, usageError } from '../../errors.ts'
import { absolutePath, isFolderName } from '../../io/paths.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { decodeBodyText } from '../../wire/charset.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import type { AnswerSummary } from '../../wire/gateway/answer-forms.ts'
import { isErrorEnvelope, readFailureInBody } from '../../wire/problem/problem.ts'
import { parseReceivedBody } from '../../wire/received-json.ts'
import { type AskedLine, createLineCaller, type LineEvents, type LineQuestion } from '../line-body.ts'
import { readImageAnswer, readImages } from './answer.ts'
import { chooseDestination, type Destination } from './destination.ts'
import { chooseModel, type ImageOptions } from './image.ts'
import { nameFrom, promptOf } from './name.ts'
import { saveImages } from './saving.ts'

/** Makes what asks for images for each line of a batch. Throws a usage error. */
export async function readImageLines(
  context: Context,
  settings: ResolvedSettings,
  { options, words }: { options: ImageOptions; words: string[] },
) {
  const folder = readFolder(options, context.host.platform)
  const model = () => chooseModel(options, settings)
  const common = { endpoint: endpoints.image, options, words, model }
  const caller = await createLineCaller(context, settings, common)
  const { context: quiet } = caller
  return {
    ...caller,
    async prepare(question: LineQuestion) {
      const request = await caller.build(question)
      const prompt = 'prompt' in question ? question.prompt : await promptOf(request.body)
      return {
        ...request,
        async ask(line: AskedLine) {
          const name = `${String(line.index).padStart(6, '0')}-${nameFrom(prompt)}`
          // Before anything is sent for it: an answer is paid for, and has to have a place.
          const destination = context.flags.raw
            ? undefined
            : await chooseDestination(quiet, { output: folder, name, replaces: options.force ?? false })
          const events = caller.createEvents(line)
          return caller.createSend(request.model, line)(request.body, (response) =>
            destination ? readLine(quiet, response, destination, events) : readRaw(quiet, response, events),
          )
        },
      }
    },
    isThere: ({ files }: Record<string, unknown>) =>
      !Array.isArray(files) || files.map(String).every((file) => isImageThere(context, file, folder)),
  }
}

/** Whether an image has its file. An earlier run may have worked in another folder, and named it from there. */
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

/** Many images go into a folder. */
function readFolder({ output }: ImageOptions, platform: NodeJS.Platform): string | undefined {
  if (output === undefined || isFolderName(output, platform)) return output
  throw usageError('--batch saves many images: -o must be a folder, with a / at its end')
}

/** The result of a line, without what the call knows. */
interface ImageLineAnswer extends Pick<AnswerSummary, 'model' | 'stopReason'> {
  content: { files: string[]; links: string[] | undefined; text: string | undefined } | { response: string }
}

/** Reads a whole answer, and saves its images. Throws a `CliError`. */
async function readLine(
  context: Context,
  response: HttpResponse,
  destination: Destination,
  { onSummary, onAssumed }: LineEvents,
): Promise<ImageLineAnswer> {
  const { images, links, texts, summary, failure, isAssumed } = await readImageAnswer(context, response, {
    onSummary,
    isOneOfMany: true,
  })
  if (isAssumed) onAssumed()
  const files: string[] = []
  const onSaved = async (path: string) => void files.push(path)
  await saveImages(context, images, { destination, onSaved }).catch((error: unknown) => {
    throw error instanceof CliError ? withPlaces(error, [...files, ...links]) : error
  })
  if (failure) throw withPlaces(failure, [...files, ...links])
  const text = texts.join('\n')
  const content = {
    files,
    links: links.length > 0 ? links : undefined,
    text: text === '' ? undefined : text,
  }
  const { model, stopReason } = summary
  return { content, model, stopReason }
}

/** What there is of an answer that is not whole. */
const withPlaces = (failure: CliError, places: string[]): CliError =>
  places.length === 0
    ? failure
    : new CliError(failure.kind, `${failure.message}; there is ${places.join(', ')}`, failure.details)

/** With `--raw` nothing is saved. Throws a `CliError`, with what came of an answer that is not whole. */
async function readRaw(
  context: Context,
  response: HttpResponse,
  { onSummary, onAssumed }: LineEvents,
): Promise<ImageLineAnswer> {
  const { summary, bytes, broken, isAssumed } = await readImages(context, response, { isOneOfMany: true })
  if (isAssumed) onAssumed()
  const contentType = response.headers['content-type'] ?? ''
  const text = decodeBodyText(bytes, contentType)
  try {
    if (broken) throw broken
    const value = parseReceivedBody(text, contentType)
    if (isErrorEnvelope(value)) throw readFailureInBody(value)
    onSummary(summary)
  } catch (error) {
    if (usageOf(summary)) onSummary(summary)
    throw error instanceof CliError && error.details.body === undefined ? error.with({ answer: text }) : error
  }
  return { content: { response: text } }
}
