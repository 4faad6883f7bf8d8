import type { CliError } from '../../errors.ts'
import { parseJson } from '../json/parse.ts'
import { createSequenceSplitter } from '../json/splitter.ts'
import { notUnderstood } from '../problem/problem.ts'
import { parseReceived, parseReceivedBody } from '../received-json.ts'
import { isTerminator, readSseEvents } from '../sse.ts'

/** The JSON values of a body that has come whole. In place of their long strings they have marks. */
export interface BodyValues {
  values: { value: unknown; event: string }[]
  /** `chunks` is a list, whose bracket ends it; a `sequence` is values in a row. */
  form: 'body' | 'chunks' | 'sequence' | 'events'
  /** Why one of them could not be read. */
  failure?: CliError
  /** The bytes of one of the values' strings, in UTF-8, whether a mark takes its place or not. */
  bytesOf(text: string): Uint8Array
}

/** How much text is read beside the long strings. Bytes. */
const mostText = 500 * 1024 * 1024

/**
 * Cuts a body into its JSON values. It is one value, a list of chunks, several values in a row, or an event stream. Each
 * value has the name of the event that brought it, or `''`. Throws a `CliError` if the body is none of these.
 */
export function readBodyValues(body: Uint8Array, contentType: string, most = mostText): BodyValues {
  const { text, bytesOf } = cutOutLongStrings(body, most)
  const isJson = /^\s*[[{]/.test(text) || contentType.startsWith('text/html')
  const areEvents =
    contentType.startsWith('text/event-stream') || /^\s*(:|data\b|event\b|id\b|retry\b)/.test(text)
  return { ...(!isJson && areEvents ? readEvents(text) : readJson(text, contentType)), bytesOf }
}

type Read = Omit<BodyValues, 'bytesOf'>

function readJson(text: string, contentType: string): Read {
  try {
    const value = parseReceivedBody(text, contentType)
    const list = Array.isArray(value) ? value : [value]
    return { values: list.map(unnamed), form: list.length === 1 ? 'body' : 'chunks' }
  } catch (error) {
    const values = /^\s*\{/.test(text) ? readSequence(text) : undefined
    if (!values) throw error
    return { values: values.map(unnamed), form: 'sequence' }
  }
}

const unnamed = (value: unknown) => ({ value, event: '' })

function readSequence(text: string): unknown[] | undefined {
  const splitter = createSequenceSplitter()
  try {
    const values = splitter.push(text)
    const rest = splitter.rest()
    if (rest !== '') values.push(rest)
    return values.map((each) => parseJson(each))
  } catch {
    return undefined
  }
}

/** How much is read of an error that is not JSON. Characters. */
const longestError = 10_000

function readEvents(text: string): Read {
  const values: Read['values'] = []
  let failure: CliError | undefined
  for (const { event, data } of readSseEvents(text, { acceptsBare: true })) {
    if (isTerminator(data)) break
    const isJson = /^\s*[[{]/.test(data)
    if (!isJson && event === 'error') values.push({ value: data.slice(0, longestError), event })
    // Anything else is a keep-alive.
    if (!isJson) continue
    try {
      values.push({ value: parseReceived(data, 'an event of the stream'), event })
    } catch (error) {
      failure ??= error as CliError
    }
  }
  if (!failure && values.length === 0) throw notUnderstood('the stream has nothing of a documented shape')
  return { values, form: 'events', failure }
}

/** A string of this length or more is cut out. Bytes. */
const long = 64 * 1024

/**
 * A body's text with marks in place of its long strings, which stay as bytes: a large image would be copied several
 * times. A long string with an escape is not cut out. Throws a `CliError` if more than `most` bytes are left: they would not
 * fit into a string.
 */
function cutOutLongStrings(body: Uint8Array, most: number): { text: string; bytesOf: BodyValues['bytesOf'] } {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
  // Random, so that no service can send it.
  const mark = crypto.randomUUID()
  const strings: Buffer[] = []
  const kept: Buffer[] = []
  let done = 0
  for (let open = bytes.indexOf('"'); open >= 0; ) {
    const close = findClosingQuote(bytes, open + 1)
    if (close < 0) break
    const string = bytes.subarray(open + 1, close)
    // With a line break it is not a string: in a stream of events a quote may stand alone.
    if (string.length >= long && !string.includes('\\') && !string.includes('\n')) {
      kept.push(bytes.subarray(done, open + 1), Buffer.from(`${mark}${strings.length}`))
      strings.push(string)
      done = close
    }
    open = bytes.indexOf('"', close + 1)
  }
  kept.push(bytes.subarray(done))
  if (kept.reduce((size, piece) => size + piece.length, 0) > most)
    throw notUnderstood('the answer is too long')
  return {
    text: new TextDecoder().decode(Buffer.concat(kept)),
    bytesOf(text) {
      const string = text.startsWith(mark) ? strings[Number(text.slice(mark.length))] : undefined
      return string ?? Buffer.from(text)
    },
  }
}

function findClosingQuote(bytes: Buffer, start: number): number {
  for (let quote = bytes.indexOf('"', start); quote >= 0; quote = bytes.indexOf('"', quote + 1)) {
    let slashes = 0
    while (quote - slashes > start && bytes[quote - slashes - 1] === 0x5c) slashes++
    if (slashes % 2 === 0) return quote
  }
  return -1
}
