import { findClosingQuote } from '../json/scanner.ts'

/** A string of this length or more is cut out. Bytes. */
const minLongBytes = 64 * 1024

/** The long strings of a JSON text, which stay as bytes: a large image would be copied several times. */
export class LongStrings {
  /** Random, so that no service can send it. */
  readonly #mark = crypto.randomUUID()
  readonly #strings: Buffer[] = []

  /** The text with marks in place of its long strings. One with an escape stays. */
  replaceLongStrings(body: Uint8Array): Uint8Array {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
    const kept: Buffer[] = []
    let done = 0
    for (let open = bytes.indexOf('"'); open >= 0; ) {
      const close = findClosingQuote(bytes, open + 1)
      if (close < 0) break
      const string = bytes.subarray(open + 1, close)
      if (string.length >= minLongBytes && !string.includes('\\')) {
        kept.push(bytes.subarray(done, open + 1), Buffer.from(`${this.#mark}${this.#strings.length}`))
        this.#strings.push(string)
        done = close
      }
      open = bytes.indexOf('"', close + 1)
    }
    return Buffer.concat([...kept, bytes.subarray(done)])
  }

  /** The bytes of a string that was parsed, in UTF-8, whether a mark takes its place or not. */
  readonly readBytes = (text: string): Uint8Array =>
    (text.startsWith(this.#mark) ? this.#strings[Number(text.slice(this.#mark.length))] : undefined) ??
    Buffer.from(text)
}
