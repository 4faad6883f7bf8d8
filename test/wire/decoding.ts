import { CliError } from '../../src/errors.ts'
import { createAnswerDecoder } from '../../src/wire/gateway/answer-decoder.ts'

/** Splits bytes at these offsets. */
export function cut(bytes: Uint8Array, places: number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b)
  return [...ends, bytes.length].map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
}

/** Returns the failure that `read` throws, if any. */
export function catchFailure(read: () => unknown): CliError | undefined {
  try {
    read()
    return undefined
  } catch (error) {
    return error as CliError
  }
}

/** Decodes an answer that arrives in these chunks. */
export function decodeAnswer(contentType: string, pieces: Uint8Array[]) {
  let text = ''
  const raw: Uint8Array[] = []
  const decoder = createAnswerDecoder(contentType, {
    text(more) {
      text += more
    },
    raw: (more) => void raw.push(Buffer.from(more as string)),
  })
  const result = () => ({ text, raw: Buffer.concat(raw).toString('latin1'), summary: decoder.summary })
  try {
    for (const piece of pieces) {
      decoder.push(piece)
      if (decoder.progress() === 'ended' && !decoder.isVerbatim()) break
    }
    decoder.end()
    return { ...result(), failure: '' }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    // How much of a verbatim body is printed before a failure depends on the split, so `raw` is not compared.
    return { ...result(), raw: decoder.isVerbatim() ? '' : result().raw, failure: error.message }
  }
}
