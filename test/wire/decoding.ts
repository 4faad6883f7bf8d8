import { CliError } from '../../src/errors.ts'
import { createAnswerDecoder } from '../../src/wire/gateway/answer-decoder.ts'
import type { AnswerProgress } from '../../src/wire/gateway/answer-reader.ts'

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

/** Decodes an answer that arrives in these chunks. `progress` is the progress before the body ended, if it was read. */
export function decodeAnswer(contentType: string, pieces: Uint8Array[], isRaw = true) {
  let text = ''
  const raw: Uint8Array[] = []
  let progress: AnswerProgress | undefined
  let isVerbatim = false
  const decoder = createAnswerDecoder(contentType, {
    text(more) {
      text += more
    },
    raw: isRaw
      ? (more) => {
          isVerbatim ||= typeof more !== 'string'
          raw.push(Buffer.from(more as string))
        }
      : undefined,
  })
  const failure = catchFailure(() => {
    for (const piece of pieces) decoder.push(piece)
    progress = decoder.progress()
    decoder.end()
  })
  if (failure && !(failure instanceof CliError)) throw failure
  // How much of a verbatim body is printed before a failure depends on the split, so `raw` is not compared.
  const printed = failure && isVerbatim ? undefined : Buffer.concat(raw).toString('latin1')
  const { summary } = decoder
  return { text, raw: printed, summary, progress: failure ? undefined : progress, failure: failure?.message }
}
