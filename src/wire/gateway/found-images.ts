import { isObject } from '../json/parse.ts'
import { LongStringStore } from './long-strings.ts'

export interface FoundImage {
  mimeType: string | undefined
  /** Base64 text, as ASCII bytes. */
  base64: Uint8Array
}

type JsonFields = Record<string, unknown>
type ReadBytes = (text: string) => Uint8Array

/**
 * Finds images in the JSON values of an answer. Because the user paid for the images, the finder accepts
 * fields with known names anywhere in a value. In a part with `thought`, which is reasoning, the finder
 * ignores text but not images.
 */
export class ImageFinder {
  readonly images: FoundImage[] = []
  /** Links to images, with control characters percent-encoded. */
  readonly links: string[] = []
  readonly texts: string[] = []
  readonly strings = new LongStringStore()
  /**
   * Pieces of one text. The pieces are joined before the text is searched for images, because a data URI may
   * span several pieces.
   */
  #pieces: string[] = []
  #isThought = false
  /**
   * True until the first text of a JSON value. The first text may continue the last text of the previous
   * value, so these two texts are joined. Every other text is searched alone.
   */
  #isContinued = false

  get hasImages(): boolean {
    return this.images.length + this.links.length > 0
  }

  find(value: unknown): void {
    this.#isContinued = true
    this.#findIn('', value)
  }

  #findIn(name: string, value: unknown): void {
    if (Array.isArray(value)) for (const each of value) this.#findIn(name, each)
    if (!isObject(value)) return
    const { readBytes } = this.strings
    for (const text of findTexts(name, value)) this.#addText(readBytes(text), value.thought === true)
    for (const image of findImages(name, value, readBytes)) {
      this.finish()
      if (typeof image === 'string') this.links.push(image)
      else this.images.push(image)
    }
    for (const [key, each] of Object.entries(value)) this.#findIn(key, each)
  }

  #addText(bytes: Uint8Array, isThought: boolean): void {
    if (!this.#isContinued || this.#isThought !== isThought) this.finish()
    this.#pieces.push(utf8.decode(bytes))
    this.#isThought = isThought
    this.#isContinued = false
  }

  finish(): void {
    const { images, text } = extractDataUris(this.#pieces.join(''))
    for (const image of images) this.images.push(image)
    if (!this.#isThought && text.trim() !== '') this.texts.push(text)
    this.#pieces = []
  }
}

/** Objects in these fields have answer text in `text`. In other objects, `text` may be a citation. */
const textFields = ['parts', 'content', 'delta', 'content_block']

const findTexts = (name: string, { text, content }: JsonFields): string[] =>
  filterTexts(textFields.includes(name) ? text : undefined, content)

const filterTexts = (...all: unknown[]): string[] => all.filter((each) => typeof each === 'string')

/**
 * Returns the images in the fields of an object. A link to an image is a string (src/wire/README.md:
 * recorded, 2).
 */
function findImages(name: string, fields: JsonFields, readBytes: ReadBytes): (FoundImage | string)[] {
  const [mimeType] = filterTexts(fields.mimeType, fields.mime_type, fields.media_type)
  const data = [fields.bytesBase64Encoded, fields.b64_json, fields.imageBytes]
  if (['inlineData', 'inline_data', 'source'].includes(name)) data.push(fields.data)
  const links = ['fileData', 'file_data'].includes(name) ? [fields.fileUri, fields.file_uri] : []
  if (['source', 'image_url', 'data'].includes(name)) links.push(fields.url)
  links.push(fields.image_url)
  return [
    ...filterTexts(...data).map((each) => fromData(readBytes(each), mimeType)),
    ...filterTexts(...links).map((each) => fromLink(readBytes(each))),
  ]
}

const fromData = (base64: Uint8Array, mimeType: string | undefined): FoundImage =>
  parseDataUri(base64) ?? { mimeType, base64 }

const fromLink = (uri: Uint8Array): FoundImage | string =>
  parseDataUri(uri) ?? utf8.decode(uri).replace(/[\x00-\x1f\x7f]/g, encodeURIComponent)

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/**
 * Matches the start of a data URI. All repetitions are bounded, because a hostile text with countless
 * starts of URIs would otherwise take quadratic time.
 */
const uriHeadPattern = (kind: string) => `data:(${kind}/[\\w.+-]{1,100})(?:;[^;,\\s]{0,100}){0,8};base64,`

const wholeUri = new RegExp(`^${uriHeadPattern('[\\w.+-]{1,100}')}`, 'i')

/** Matches 32 or more characters of data, because shorter data is usually an example in a text about URIs. */
const uriDataPattern = (letters: string) => `(?=[${letters}]{32})([${letters}]*)`

/** Only a URI in brackets or quotes may contain line breaks. Any other URI ends at the first line break. */
const imageUri = new RegExp(
  `(?<=[("'<])${uriHeadPattern('image')}${uriDataPattern('\\w+/=\\r\\n-')}|${uriHeadPattern('image')}${uriDataPattern('\\w+/=-')}`,
  'gi',
)

function parseDataUri(value: Uint8Array): FoundImage | undefined {
  const start = Buffer.from(value.buffer, value.byteOffset, Math.min(value.length, 1100)).toString('latin1')
  const [head, mimeType] = wholeUri.exec(start) ?? []
  return head === undefined ? undefined : { mimeType, base64: value.subarray(head.length) }
}

export function extractDataUris(text: string): { text: string; images: FoundImage[] } {
  const images: FoundImage[] = []
  const rest = text.replace(imageUri, (_, closedType, closedData, bareType, bareData) => {
    images.push({ mimeType: closedType ?? bareType, base64: Buffer.from(closedData ?? bareData) })
    return ''
  })
  return { text: rest, images }
}
