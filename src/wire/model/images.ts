import { parseDataUri, splitDataUris } from './data-uri.ts'
import type { SparseJson } from './sparse-json.ts'

/** An image in an answer: its base64, or a link to it. */
export type FoundImage = { mimeType: string | undefined } & ({ base64: Uint8Array } | { uri: string })

/** What an answer shows: its images in their order, and its text without them. */
export interface Findings {
  images: FoundImage[]
  texts: string[]
  /** What the service says of its end. */
  reasons: string[]
}

type Fields = Record<string, unknown>
type BytesOf = SparseJson['bytesOf']

/**
 * Finds the images in the values of an answer, whatever lies around them: a known field is enough, since nothing may
 * cost an image that was paid for. An image in a thought counts, a thought's text does not.
 */
export function findImages(values: readonly SparseJson[]): Findings {
  const findings: Findings = { images: [], texts: [], reasons: [] }
  const texts = createTextCollector(findings)
  for (const { value, bytesOf } of values) {
    texts.nextValue()
    for (const [name, fields] of objectsIn(value)) {
      for (const text of textsOf(name, fields)) texts.add(bytesOf(text), fields.thought === true)
      for (const image of imagesOf(name, fields, bytesOf)) {
        texts.end()
        findings.images.push(image)
      }
      for (const reason of [fields.finishMessage, fields.blockReasonMessage]) {
        if (typeof reason === 'string') findings.reasons.push(reason)
      }
    }
  }
  texts.end()
  return findings
}

/** Every object of a value, in its order, with the name of the field that it or its list is in. */
function* objectsIn(root: unknown): Generator<[name: string, fields: Fields]> {
  const waiting: [string, unknown][] = [['', root]]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const [name, value] = next
    if (typeof value !== 'object' || value === null) continue
    if (Array.isArray(value)) {
      for (let i = value.length - 1; i >= 0; i--) waiting.push([name, value[i]])
    } else {
      yield [name, value as Fields]
      const entries = Object.entries(value)
      for (let i = entries.length - 1; i >= 0; i--) waiting.push(entries[i] as [string, unknown])
    }
  }
}

/** Where a field `text` is a part of the answer, and not of a citation or the like. */
const textHolders = ['parts', 'content', 'delta', 'content_block']

const textsOf = (name: string, { text, content }: Fields): string[] =>
  [textHolders.includes(name) ? text : undefined, content].filter((each) => typeof each === 'string')

/** The images that one object is itself (recorded, 2); those inside it are found when it is their turn. */
function imagesOf(name: string, fields: Fields, bytesOf: BytesOf): FoundImage[] {
  const mimeType = firstText(fields.mimeType, fields.mime_type, fields.media_type)
  const data = [fields.bytesBase64Encoded, fields.b64_json, fields.imageBytes]
  if (['inlineData', 'inline_data', 'source'].includes(name)) data.push(fields.data)
  const links = ['fileData', 'file_data'].includes(name) ? [fields.fileUri, fields.file_uri] : []
  if (['source', 'image_url', 'data'].includes(name)) links.push(fields.url)
  links.push(fields.image_url)
  return [
    ...data.filter((each) => typeof each === 'string').map((each) => fromData(bytesOf(each), mimeType)),
    ...links.filter((each) => typeof each === 'string').map((each) => fromLink(bytesOf(each), mimeType)),
  ]
}

const firstText = (...all: unknown[]) => all.find((each) => typeof each === 'string')

const fromData = (base64: Uint8Array, mimeType: string | undefined): FoundImage =>
  parseDataUri(base64) ?? { mimeType, base64 }

const fromLink = (uri: Uint8Array, mimeType: string | undefined): FoundImage =>
  parseDataUri(uri) ?? { mimeType, uri: utf8.decode(uri) }

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** Puts together what a stream brings in pieces: a data URI may be cut anywhere. */
function createTextCollector({ images, texts }: Findings) {
  let pieces: string[] = []
  let isThought = false
  /** The next piece goes on where the last one ended. */
  let goesOn = false

  function end(): void {
    const split = splitDataUris(pieces.join(''))
    for (const image of split.images) images.push(image)
    if (!isThought && split.text.trim() !== '') texts.push(split.text)
    pieces = []
    goesOn = false
  }

  return {
    add(bytes: Uint8Array, isNextThought: boolean): void {
      if (!goesOn || isThought !== isNextThought) end()
      pieces.push(utf8.decode(bytes))
      isThought = isNextThought
      // A further text of the same value is a part of its own.
      goesOn = false
    },
    nextValue(): void {
      goesOn = pieces.length > 0
    },
    end,
  }
}
