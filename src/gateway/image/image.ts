import { buildRequestBody } from '../../content/body.ts'
import { readPromptInputs } from '../../content/prompt.ts'
import { addAnswerSummaryToReport } from '../../content/tokens.ts'
import { printUsageLine, printWarningsAndUsageLine } from '../../content/usage-line.ts'
import type { Context } from '../../context.ts'
import { type CliError, usageError } from '../../errors.ts'
import { createServiceCaller, type ReadableResponse } from '../../http/call.ts'
import { escapeControls } from '../../io/escape.ts'
import { findPictureProblem, findPictureProtocol, renderPicture } from '../../io/picture.ts'
import { createSpinner } from '../../io/spinner.ts'
import { formatProfileFlag, type ResolvedSettings, readSettings } from '../../settings/resolve.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { type BodyFlags, createBodyParts } from '../body-flags.ts'
import {
  type AnswerPartOutcome,
  ContinuedAnswer,
  createDeadlineCheck,
  type SendPartRequest,
} from '../continued-answer.ts'
import { createImageReader, findCutAnswerFailure, type ImageReader } from './answer.ts'
import { openImageDestination } from './destination.ts'
import { createImageName, readPromptOfBody } from './name.ts'
import { type ImageSaveOptions, printImagePath, printStdoutLine } from './saving.ts'

export interface ImageOptions extends BodyFlags {
  output?: string
  failOnCut?: boolean
  force?: boolean
  preview?: boolean
  usage?: boolean
}

export async function runImage(context: Context, flags: ImageOptions, words: string[]): Promise<void> {
  const options = flags.output === '/dev/stdout' ? { ...flags, output: '-' } : flags
  const settings = await readSettings(context)
  const { values } = settings
  const model = chooseImageModel(options, settings)
  const { given, turn, text, system } = await readPromptInputs(context, options, words)
  const bodyText = buildRequestBody({ ...createBodyParts(options, { system }), given, turn })
  const caller = createServiceCaller(context, settings)
  const body = Buffer.from(bodyText)
  const parts = { params: { family: values.family, model }, body }
  if (await caller.preview(endpoints.image, parts)) return
  const { raw } = context.flags
  const send: SendPartRequest = (body, read) =>
    caller.call(endpoints.image, { ...parts, body, hasOutput: raw }, read)
  if (raw) return printRawAnswer(context, send, body, options.usage)
  const fileStem = createImageName(text || readPromptOfBody(bodyText))
  const { output, force: replaces = false, failOnCut = values.failOnCut } = options
  const problems: string[] = []
  const warn = failOnCut ? (problem: string) => void problems.push(problem) : context.messages.warn
  const destination = await openImageDestination(context, { output, fileStem, replaces })
  let show: ReturnType<typeof createPreview> | undefined
  const onSaved: ImageSaveOptions['onSaved'] = async (path, { bytes, extension }) => {
    await printImagePath(context, path)
    show ??= createPreview(context, options.preview)
    await show(bytes, extension)
  }
  const reading = createImageReader(context, {
    destination,
    warn,
    onSaved,
    onSummary: (summary) => addAnswerSummaryToReport(context.reportData, summary),
  })
  const { texts } = reading.finder
  const answer = new ContinuedAnswer(body)
  const spinner = createSpinner(context)

  async function read(response: HttpResponse): Promise<AnswerPartOutcome> {
    spinner.show('waiting for the image')
    try {
      const save = () => [reading.saveReceivedPart()]
      return await context.tracker.during({ save }, () => reading.read(response))
    } finally {
      spinner.stop()
    }
  }

  async function finish(response: ReadableResponse, { end }: ContinuedAnswer): Promise<void> {
    const failure = await reading.finish()
    let cut: CliError | undefined
    response.accept()
    try {
      await context.tracker.during(lostImages, () => saveAnswer(context, reading, output))
    } finally {
      printTexts(context, texts.splice(0))
      if (failOnCut) cut = findCutAnswerFailure(end, problems)
      if (cut) printUsageLine(context, end.summary, options.usage)
      else printWarningsAndUsageLine(context, end, options.usage)
    }
    const problem = failure ?? cut
    if (problem) throw problem
  }

  try {
    await answer.receive(send, { read, finish }, { requireNext: createDeadlineCheck(context) })
  } catch (error) {
    if (answer.isBegun && !answer.isWhole) {
      await reading.saveRemainingImages()
      printTexts(context, texts)
    }
    throw error
  }
}

/**
 * Prints the received bytes for `--raw`. Fails only if the service sends an error or a body that is not JSON.
 */
async function printRawAnswer(context: Context, send: SendPartRequest, body: Uint8Array, showsUsage = false) {
  const { openAnswerOutput } = await import('../chat/answer.ts')
  const output = await openAnswerOutput(context, { showsUsage })
  const answer = new ContinuedAnswer(body)
  const receive = () => answer.receive(send, output, { requireNext: createDeadlineCheck(context) })
  await context.tracker.during({ save: output.save }, receive).finally(output.close)
}

export function chooseImageModel({ model }: Pick<ImageOptions, 'model'>, settings: ResolvedSettings): string {
  const chosen = model ?? settings.values.imageModel
  if (chosen !== undefined) return chosen
  const profile = formatProfileFlag(settings)
  const setup = `'parley config init${profile}' prompts for the address and the model, or `
  const ways = `give -m NAME, set PARLEY_IMAGE_MODEL, or run 'parley config set${profile} imageModel NAME'`
  throw usageError(`no image model: ${settings.values.baseUrl === undefined ? setup : ''}${ways}`)
}

const lostImages = {
  onInterrupt: () => 'the answer was received; images whose path was not printed are lost',
}

async function saveAnswer(context: Context, reading: ImageReader, output: string | undefined): Promise<void> {
  const { images, links } = reading.finder
  for (const uri of links)
    context.messages.note(`the answer links to an image, which is not downloaded: ${uri}`)
  // A message would shorten long links and redact text that looks like a secret, so the links are the answer.
  if (images.length === 0 && output === '-')
    throw createResponseError('the answer has only links to images, which -o - does not write').with({
      answer: links.join('\n'),
    })
  await reading.saveFoundImages()
  // The images are saved before links are printed, because writing to stdout may fail.
  if (output !== '-') for (const uri of links) await printStdoutLine(context, uri)
  await context.output.flush()
}

/** Starts each line with `|`, because a CI system could execute a line of the service's text as a command. */
function printTexts({ messages }: Context, texts: string[]): void {
  for (const line of texts.flatMap((text) => text.trim().split('\n')))
    messages.printLine(messages.style.dim(`| ${escapeControls(line)}`))
}

/**
 * Returns a function that shows an image on a terminal that supports images. With `--preview`, also tries a
 * terminal that parley does not recognize.
 */
function createPreview({ host, output, messages }: Context, isWanted: boolean | undefined) {
  const protocol = output.isTerminal ? findPictureProtocol(host.env, isWanted) : undefined
  if (isWanted && !protocol) messages.note('--preview: stdout is not a terminal that shows images')
  if (isWanted === false || !protocol) return async () => {}
  return async (bytes: Uint8Array, extension: string) => {
    const problem = findPictureProblem(protocol, bytes, extension)
    if (problem === undefined) await output.write(renderPicture(protocol, bytes))
    else if (isWanted) messages.note(`--preview: this image is not shown: ${problem}`)
  }
}
