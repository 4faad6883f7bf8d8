import { createCaller } from '../calls/caller.ts'
import { readSettings } from '../calls/settings.ts'
import type { Context } from '../context.ts'
import { usage } from '../errors.ts'
import { tellAbout } from '../generation/footer.ts'
import { escapeControls } from '../io/escape.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { endpoints } from '../wire/endpoints.ts'
import { decodeBase64 } from '../wire/model/base64.ts'
import type { FoundImage } from '../wire/model/found-images.ts'
import { notUnderstood } from '../wire/problem/not-understood.ts'
import { readImageAnswer } from './answer.ts'
import { fetchLink, keepLinks, onOneLine } from './link.ts'
import { choosePlace, type Place } from './place.ts'
import { keep } from './recovery.ts'
import { type ImageRequestOptions, readImageRequest } from './request.ts'
import { type Image, printLine, saveImages } from './save.ts'
import { createShow } from './show.ts'

export interface ImageOptions extends ImageRequestOptions {
  model?: string | undefined
  output?: string | undefined
  force?: boolean | undefined
  download?: boolean | undefined
  preview?: boolean | undefined
  usage?: boolean | undefined
}

/** Asks for images, saves them and prints their paths. */
export async function makeImages(context: Context, options: ImageOptions, words: string[]): Promise<void> {
  const { flags } = context
  const start = Date.now()
  const settings = await readSettings(context)
  const { family, imageModel } = settings.values
  const model = options.model ?? imageModel
  if (model === undefined) {
    throw usage("no image model: give -m NAME, or set one with 'parley config set imageModel NAME'")
  }
  const { body, name } = await readImageRequest(context.input, words, options)
  if (flags.raw && options.output !== undefined) context.note('--raw saves nothing: -o is ignored')
  const isSaved = !flags.raw && !flags.dryRun && !flags.curl
  const place = isSaved
    ? await choosePlace(context, { output: options.output, name, replaces: options.force ?? false })
    : undefined
  const caller = createCaller(context, settings)
  const parts = { params: { family, model }, body }
  if (await caller.preview(endpoints.image, parts)) return
  await caller.call(endpoints.image, parts, async (response) => {
    const { images, texts, summary, failure } = await readImageAnswer(context, response)
    try {
      if (place) await saveAnswer(context, options, { images, place, settings, deadline: caller.deadline })
    } finally {
      tellTexts(context, texts)
      const seconds = (Date.now() - start) / 1000
      tellAbout(context, { summary, isBlank: false, isDamaged: false, seconds, isAsked: options.usage })
    }
    if (failure) throw failure
  })
}

interface Answered {
  images: FoundImage[]
  place: Place
  settings: ResolvedSettings
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
}

/** Saves the images of an answer; its links are printed, or with `--download` followed. */
async function saveAnswer(
  context: Context,
  options: ImageOptions,
  { images, place, settings, deadline }: Answered,
): Promise<void> {
  const { output } = context
  context.whenInterrupted(() => 'the answer had come; an image whose path was not printed is lost')
  const links = options.download ? [] : images.filter((image) => 'uri' in image)
  for (const { uri } of links)
    context.note(`an image is only linked to, --download fetches it: ${onOneLine(uri)}`)
  const loads = images
    .filter((image) => options.download || 'base64' in image)
    .map((image) => () => load(context, settings, { image, deadline }))
  if (loads.length === 0 && options.output === '-')
    throw await keepLinks(
      context,
      notUnderstood('the answer has only links to images'),
      links.map(({ uri }) => uri),
    )
  await saveImages(context, loads, { place, show: createShow(context, options.preview) })
  // After the images: a stdout that cannot be written must not cost one.
  if (options.output !== '-') for (const { uri } of links) await printLine(context, onOneLine(uri))
  await output.flush()
}

async function load(
  context: Context,
  settings: ResolvedSettings,
  { image, deadline }: { image: FoundImage; deadline: number },
): Promise<Image> {
  if ('uri' in image) return fetchLink(context, settings, { uri: image.uri, deadline })
  const bytes = decodeBase64(image.base64)
  if (!bytes) {
    const failure = notUnderstood("an image's data is not proper base64")
    throw await keep(context, failure, { bytes: image.base64, extension: 'txt', what: 'it' })
  }
  return { bytes, mimeType: image.mimeType }
}

/** The words beside the images. A mark first: a service's text never stands at the start of a line. */
function tellTexts({ tell, style }: Context, texts: string[]): void {
  for (const line of texts.flatMap((text) => text.trim().split('\n')))
    tell(style.dim(`| ${escapeControls(line)}`))
}
