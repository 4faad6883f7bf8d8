import { rescue } from '../../content/rescue.ts'
import type { Context } from '../../context.ts'
import { CliError, OutputClosed } from '../../errors.ts'
import { escapeControls } from '../../io/escape.ts'
import { decodeBase64 } from '../../wire/gateway/base64.ts'
import type { FoundImage } from '../../wire/gateway/found-images.ts'
import { notUnderstood } from '../../wire/problem/not-understood.ts'
import type { Destination } from './destination.ts'
import { mimeTypeOf, recognizeFormat } from './format.ts'
import { encodeControls, fetchLink, type Image, type LinkClient } from './link.ts'

export interface SaveOptions {
  destination: Destination
  client: LinkClient
  /** Called with each image that was saved as a file. */
  onSaved(path: string, image: { bytes: Uint8Array; extension: string }): Promise<void>
}

/** Sorts an answer's images: those to be saved, and the links to others, which only `download` saves. */
export function sortImages(
  images: readonly FoundImage[],
  download = false,
): { wanted: FoundImage[]; links: string[] } {
  const isWanted = (image: FoundImage) => download || 'base64' in image
  const links = images.filter((image) => !isWanted(image)).filter((image) => 'uri' in image)
  return { wanted: images.filter(isWanted), links: links.map(({ uri }) => encodeControls(uri)) }
}

/**
 * Saves images one by one. A failure does not stop the others; an image that cannot be saved
 * at its destination is kept in the temporary folder. Throws a `CliError` at the end that names every failure.
 */
export async function saveImages(
  context: Context,
  images: readonly FoundImage[],
  options: SaveOptions,
): Promise<void> {
  const failures: CliError[] = []
  let closed: OutputClosed | undefined
  for (const found of images) {
    try {
      const image = await load(context, found, options.client)
      await saveImage(context, image, { ...options, count: images.length })
    } catch (error) {
      if (error instanceof CliError) failures.push(error)
      else if (error instanceof OutputClosed) closed = error
      else throw error
    }
  }
  if (failures.length > 0) throw summarize(failures, images.length)
  if (closed) throw closed
}

const tooMany = (count: number) =>
  new CliError('file', `-o - can write only one image, and the answer has ${count}`)

function summarize(failures: CliError[], count: number): CliError {
  const [first] = failures as [CliError]
  if (failures.length === 1) return first.with({ sent: 'yes' })
  const problems = failures.map(({ message }) => message)
  return new CliError(first.kind, `${failures.length} of ${count} images were not saved`, {
    sent: 'yes',
    problems,
    kept: failures.flatMap(({ details: { kept } }) => kept ?? []),
  })
}

async function saveImage(
  context: Context,
  { bytes, mimeType }: Image,
  { destination, onSaved, count }: SaveOptions & { count: number },
): Promise<void> {
  const { extension, isMislabelled } = await recognizeFormat(bytes, mimeType)
  if (count > destination.capacity) throw await rescue(context, tooMany(count), { bytes, extension })
  if (extension === undefined) {
    const claim = mimeType ? ` (it is called ${mimeType})` : ''
    throw await rescue(context, new CliError('response', `the service sent no known kind of image${claim}`), {
      bytes,
    })
  }
  if (isMislabelled) context.note(`the service calls an image ${mimeType}, but its bytes are ${extension}`)
  const path = await destination.save(bytes, extension).catch(async (error: unknown) => {
    throw error instanceof CliError ? await rescue(context, error, { bytes, extension }) : error
  })
  if (path === undefined) return
  context.summary.files?.push(path)
  context.summary.fileTypes.set(path, mimeTypeOf(extension))
  await onSaved(path, { bytes, extension })
}

/** Prints the path of an image. */
export const printPath = (context: Context, path: string): Promise<void> =>
  printLine(context, path).catch((error: unknown) => {
    if (!(error instanceof CliError)) throw error
    throw new CliError('file', `${path} is saved, but its path was not printed: ${error.message}`)
  })

/** Prints a path or a link, which has no line breaks, as one line; on a terminal control characters are made visible. */
export async function printLine({ output }: Context, text: string): Promise<void> {
  await output.write(`${output.isTerminal ? escapeControls(text) : text}\n`)
  await output.flush()
}

/** An image's bytes, decoded or fetched. Throws a `CliError`. */
async function load(context: Context, image: FoundImage, client: LinkClient): Promise<Image> {
  if ('uri' in image) return fetchLink(context, image.uri, client)
  const bytes = decodeBase64(image.base64)
  if (bytes) return { bytes, mimeType: image.mimeType }
  const failure = notUnderstood("an image's data is not proper base64")
  throw await rescue(context, failure, { bytes: image.base64, extension: 'txt', what: 'it' })
}
