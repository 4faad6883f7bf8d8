import { printReport } from '../../content/footer.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createCaller } from '../../http/call.ts'
import { escapeControls } from '../../io/escape.ts'
import { readSettings } from '../../settings/read-settings.ts'
import type { Settings } from '../../settings/schemas.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import type { FoundImage } from '../../wire/gateway/found-images.ts'
import { notUnderstood } from '../../wire/problem/not-understood.ts'
import { chooseDestination, type Destination } from './destination.ts'
import { readImageAnswer } from './image-answer.ts'
import { encodeControls, type LinkClient, rescueLinks } from './link.ts'
import { load } from './load.ts'
import { type ImageRequestOptions, readImageRequest } from './request.ts'
import { printLine, printPath, saveImages } from './save.ts'
import { createShow } from './show.ts'

export interface ImageOptions extends ImageRequestOptions {
  model?: string
  output?: string
  force?: boolean
  download?: boolean
  preview?: boolean
  usage?: boolean
}

/** Asks for images, saves them and prints their paths. */
export async function makeImages(context: Context, options: ImageOptions, words: string[]): Promise<void> {
  const start = Date.now()
  const { values, ...settings } = await readSettings(context)
  const model = chooseModel(options, values)
  const { body, name } = await readImageRequest(context.input, words, options)
  const destination = await openDestination(context, options, name)

  const caller = createCaller(context, { values, ...settings })
  const parts = { params: { family: values.family, model }, body }
  if (await caller.preview(endpoints.image, parts)) return
  const client = { exchange: caller.exchange, retries: values.retries, deadline: caller.deadline }
  const target = { destination, client, start }
  await caller.call(endpoints.image, parts, (response) => receive(context, response, { options, ...target }))
}

export function chooseModel({ model }: Pick<ImageOptions, 'model'>, { imageModel }: Settings): string {
  const chosen = model ?? imageModel
  if (chosen !== undefined) return chosen
  throw usage("no image model: give -m NAME, or set one with 'parley config set imageModel NAME'")
}

/** Where the images go; `undefined` where none is to be saved. */
async function openDestination(
  context: Context,
  { output, force: replaces = false }: ImageOptions,
  name: string,
): Promise<Destination | undefined> {
  const { raw, dryRun, curl } = context.flags
  if (raw && output !== undefined) context.note('--raw saves nothing: -o is ignored')
  return raw || dryRun || curl ? undefined : chooseDestination(context, { output, name, replaces })
}

interface Target {
  options: ImageOptions
  /** Absent where no image is saved. */
  destination: Destination | undefined
  client: LinkClient
  /** When the run began: milliseconds since the epoch. */
  start: number
}

/** Reads an answer, saves its images and prints the rest. */
async function receive(context: Context, response: HttpResponse, target: Target): Promise<void> {
  const { options, destination, client, start } = target
  const { images, texts, summary, failure } = await readImageAnswer(context, response)
  try {
    if (destination) await saveAnswer(context, images, { options, destination, client })
  } finally {
    printTexts(context, texts)
    const seconds = (Date.now() - start) / 1000
    printReport(context, { summary, isBlank: false, isDamaged: false, seconds, isAsked: options.usage })
  }
  if (failure) throw failure
}

interface Saving extends Pick<Target, 'options' | 'client'> {
  destination: Destination
}

/** Saves the images of an answer; its links are printed, or with `--download` fetched. */
async function saveAnswer(
  context: Context,
  images: readonly FoundImage[],
  { options: { download, output, preview }, destination, client }: Saving,
): Promise<void> {
  context.calls.sayInstead(() => 'the answer had come; an image whose path was not printed is lost')
  const links = download ? [] : images.filter((image) => 'uri' in image).map(({ uri }) => encodeControls(uri))
  for (const uri of links) context.note(`an image is only linked to, --download fetches it: ${uri}`)
  const loads = images
    .filter((image) => download || 'base64' in image)
    .map((image) => () => load(context, image, client))
  if (loads.length === 0 && output === '-') {
    throw await rescueLinks(context, notUnderstood('the answer has only links to images'), links)
  }
  const show = createShow(context, preview)
  await saveImages(context, loads, {
    destination,
    async onSaved(path, { bytes, extension }) {
      await printPath(context, path)
      await show(bytes, extension)
    },
  })
  // After the images: a stdout that cannot be written must not cost one.
  if (output !== '-') for (const uri of links) await printLine(context, uri)
  await context.output.flush()
}

/** The words beside the images. A mark first: a line never begins with a service's text. */
function printTexts({ tell, style }: Context, texts: string[]): void {
  for (const line of texts.flatMap((text) => text.trim().split('\n')))
    tell(style.dim(`| ${escapeControls(line)}`))
}
