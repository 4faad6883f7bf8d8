import { findClosingQuote } from '../json/scanner.ts'

/** Minimum length of a string that is replaced. */
const minLongBytes = 64 * 1024

/** Stores the long strings of a JSON text as bytes, because parsing would copy a large image several times. */
export class LongStrings {
  /** Start of each placeholder. It is random, so a service cannot send a placeholder. */
  readonly #mark = crypto.randomUUID()
  readonly #strings: Buffer[] = []

  /** Returns the text with a placeholder for each long string without escapes. */
  replaceLongStrings(body: Uint8Array): Uint8Array {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.length)
    const pieces: Buffer[] = []
    let done = 0
    for (let open = bytes.indexOf('"'); open >= 0; ) {
      const close = findClosingQuote(bytes, open + 1)
      if (close < 0) break
      const string = bytes.subarray(open + 1, close)
      if (string.length >= minLongBytes && !string.includes('\\')) {
        pieces.push(bytes.subarray(done, open + 1), Buffer.from(`${this.#mark}${this.#strings.length}`))
        this.#strings.push(string)
        done = close
      }
      open = bytes.indexOf('"', close + 1)
    }
    return Buffer.concat([...pieces, bytes.subarray(done)])
  }

  /** Returns the UTF-8 bytes of a parsed string, or of the string that its placeholder replaced. */
  readonly readBytes = (text: string): Uint8Array =>
    (text.startsWith(this.#mark) ? this.#strings[Number(text.slice(this.#mark.length))] : undefined) ??
    Buffer.from(text)
}
