import { asFailure, type CliError } from '../../errors.ts'
import { isObject } from '../json/parse.ts'
import { isErrorEnvelope } from '../problem/problem.ts'
import { LongStrings } from './long-strings.ts'

/** An image in an answer. */
export interface FoundImage {
  mimeType: string | undefined
  /** ASCII. */
  base64: Uint8Array
}

/** An answer's images, in order, and its text without them. */
export interface Findings {
  images: FoundImage[]
  /** To images that the answer does not have itself. Their control characters are encoded. */
  links: string[]
  texts: string[]
  /** The service's explanations of why the answer ended. */
  reasons: string[]
}

type JsonFields = Record<string, unknown>
type ReadBytes = (text: string) => Uint8Array

/**
 * Finds the images in the JSON values of an answer. A known field is enough, whatever is around it, so that no image is lost
 * that was paid for. An image in a thought counts, a thought's text does not.
 */
export class ImageFinder {
  readonly findings: Findings = { images: [], links: [], texts: [], reasons: [] }
  /** The first part that is not JSON, or cannot be read for another reason. */
  unreadable: CliError | undefined
  /** The answer broke off. */
  broken: CliError | undefined
  /** A value has another shape than documented, or is an error. */
  failure: CliError | undefined
  /** The service's own error in a stream. */
  error: CliError | undefined
  /** What takes the long strings out of a body. */
  readonly strings = new LongStrings()
  /** The pieces in which a stream sends a text: a data URI may be cut anywhere. */
  #pieces: string[] = []
  #isThought = false
  /** The next piece continues the last one: another text of the same value is a separate part. */
  #goesOn = false

  get hasImages(): boolean {
    return this.findings.images.length + this.findings.links.length > 0
  }

  find(value: unknown): void {
    this.#goesOn = true
    this.#findIn('', value)
  }

  /** Finds them in every object of a value, in order; `name` is that of the field that has it or its list. */
  #findIn(name: string, value: unknown): void {
    if (Array.isArray(value)) for (const each of value) this.#findIn(name, each)
    if (!isObject(value)) return
    const { readBytes } = this.strings
    for (const text of findTexts(name, value)) this.#addText(readBytes(text), value.thought === true)
    for (const image of findImages(name, value, readBytes)) {
      this.finish()
      if (typeof image === 'string') this.findings.links.push(image)
      else this.findings.images.push(image)
    }
    this.findings.reasons.push(...filterTexts(value.finishMessage, value.blockReasonMessage))
    for (const [key, each] of Object.entries(value)) this.#findIn(key, each)
  }

  /** Takes the failure of a value, which is `undefined` if there is none. Only in a stream it has an event. */
  recordFailure(error: unknown, value: unknown, event?: string): void {
    const failure = asFailure(error)
    // A failure to understand a value is hidden if the value has an image, a bug is not.
    if (value !== undefined && failure.kind !== 'unexpected') this.failure ??= failure
    else if (failure.details.isCutOff) this.broken ??= failure
    else this.unreadable ??= failure
    if (event?.toLowerCase() === 'error' || (event !== undefined && isErrorEnvelope(value)))
      this.error ??= failure
  }

  /** Reads a piece of the answer. A failure does not stop the reading. */
  tryRead(read: () => void): void {
    try {
      read()
    } catch (failure) {
      this.recordFailure(failure, undefined)
    }
  }

  #addText(bytes: Uint8Array, isThought: boolean): void {
    if (!this.#goesOn || this.#isThought !== isThought) this.finish()
    this.#pieces.push(utf8.decode(bytes))
    this.#isThought = isThought
    this.#goesOn = false
  }

  /** Ends the text. Called when nothing more comes of it. */
  finish(): void {
    const { images, text } = extractDataUris(this.#pieces.join(''))
    for (const image of images) this.findings.images.push(image)
    if (!this.#isThought && text.trim() !== '') this.findings.texts.push(text)
    this.#pieces = []
  }
}

/** Where a field `text` is a part of the answer, and not of a citation or the like. */
const textFields = ['parts', 'content', 'delta', 'content_block']

const findTexts = (name: string, { text, content }: JsonFields): string[] =>
  filterTexts(textFields.includes(name) ? text : undefined, content)

const filterTexts = (...all: unknown[]): string[] => all.filter((each) => typeof each === 'string')

/** The images and links that one object is itself (recorded, 2); those inside it are found when it is their turn. */
function findImages(name: string, fields: JsonFields, bytesOf: ReadBytes): (FoundImage | string)[] {
  const [mimeType] = filterTexts(fields.mimeType, fields.mime_type, fields.media_type)
  const data = [fields.bytesBase64Encoded, fields.b64_json, fields.imageBytes]
  if (['inlineData', 'inline_data', 'source'].includes(name)) data.push(fields.data)
  const links = ['fileData', 'file_data'].includes(name) ? [fields.fileUri, fields.file_uri] : []
  if (['source', 'image_url', 'data'].includes(name)) links.push(fields.url)
  links.push(fields.image_url)
  return [
    ...filterTexts(...data).map((each) => fromData(bytesOf(each), mimeType)),
    ...filterTexts(...links).map((each) => fromLink(bytesOf(each))),
  ]
}

const fromData = (base64: Uint8Array, mimeType: string | undefined): FoundImage =>
  parseDataUri(base64) ?? { mimeType, base64 }

const fromLink = (uri: Uint8Array): FoundImage | string =>
  parseDataUri(uri) ?? utf8.decode(uri).replace(/[\x00-\x1f\x7f]/g, encodeURIComponent)

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** What a data URI has before its data. All lengths are limited: a hostile text begins many, and ends none. */
const uriHeadPattern = (kind: string) => `data:(${kind}/[\\w.+-]{1,100})(?:;[^;,\\s]{0,100}){0,8};base64,`

const wholeUri = new RegExp(`^${uriHeadPattern('[\\w.+-]{1,100}')}`, 'i')

/** Shorter data is not an image but words about one. */
const uriDataPattern = (letters: string) => `(?=[${letters}]{32})([${letters}]*)`

/** Line breaks can be part of a URI only in brackets or quotes; a bare URI ends at the first. */
const imageUri = new RegExp(
  `(?<=[("'<])${uriHeadPattern('image')}${uriDataPattern('\\w+/=\\r\\n-')}|${uriHeadPattern('image')}${uriDataPattern('\\w+/=-')}`,
  'gi',
)

/** A whole value that is a data URI in base64, as a view of its bytes; `undefined` for anything else. */
function parseDataUri(value: Uint8Array): FoundImage | undefined {
  const start = Buffer.from(value.buffer, value.byteOffset, Math.min(value.length, 1100)).toString('latin1')
  const [head, mimeType] = wholeUri.exec(start) ?? []
  return head === undefined ? undefined : { mimeType, base64: value.subarray(head.length) }
}

/** Takes images that are `data:` URIs out of a text. */
export function extractDataUris(text: string): { text: string; images: FoundImage[] } {
  const images: FoundImage[] = []
  const rest = text.replace(imageUri, (_, closedType, closedData, bareType, bareData) => {
    images.push({ mimeType: closedType ?? bareType, base64: Buffer.from(closedData ?? bareData) })
    return ''
  })
  return { text: rest, images }
}
