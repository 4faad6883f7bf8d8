import { findClosingQuote } from '../json/scanner.ts'

const minLongBytes = 64 * 1024

/**
 * Removes long strings from a body before the body is parsed, because parsing copies a large image several
 * times.
 */
export class LongStringStore {
  /** Start of each placeholder, which is random, so that no service can send a placeholder. */
  readonly #mark = crypto.randomUUID()
  readonly #strings: Buffer[] = []

  /**
   * Returns the body with placeholders instead of long strings. Strings with escapes stay in the body,
   * because their bytes differ from their text.
   */
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

  readonly readBytes = (text: string): Uint8Array =>
    (text.startsWith(this.#mark) ? this.#strings[Number(text.slice(this.#mark.length))] : undefined) ??
    Buffer.from(text)
}
