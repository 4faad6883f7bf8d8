import { notUnderstood } from '../problem/not-understood.ts'

/** How much can be parsed: it must fit into a string. Bytes. */
const most = 500 * 1024 * 1024

/** A string of this length or more is cut out. Bytes. */
const long = 64 * 1024

/** A JSON value with marks in place of its long strings, which stay as bytes. */
export interface LargeJson {
  value: unknown
  /** The bytes of one of the value's strings, in UTF-8, whether it was cut out or not. */
  bytesOf(text: string): Uint8Array
}

/**
 * Parses JSON in UTF-8 without its long strings, because a large image would be copied several times. A long string
 * with an escape is not cut out. `parse` gets the text that is left. Throws a `CliError` where that is longer than a
 * string can be.
 */
export function parseLargeJson(body: Uint8Array, parse: (text: string) => unknown): LargeJson {
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
    if (string.length >= long && !string.includes('\\')) {
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
    value: parse(new TextDecoder().decode(Buffer.concat(kept))),
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
