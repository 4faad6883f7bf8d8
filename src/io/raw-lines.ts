/** A line of a file as it was found there, without its line break. */
export interface RawLine {
  /** `undefined` if it is longer than what was asked for. */
  bytes: Uint8Array | undefined
  /** Where the next line begins. Bytes from the start. */
  end: number
  /** False only for what comes after the last line break. */
  isWhole: boolean
}

const newline = 0x0a

/**
 * Cuts bytes into lines, chunk by chunk. A chunk's lines have to be read before the next chunk: each is cut when it is
 * read, since a batch takes its time over a chunk, and a list of its lines would outlive the young generation.
 * Of a line that is longer than `longest` nothing is kept.
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  longest: number,
): AsyncGenerator<Iterable<RawLine>, void, undefined> {
  let kept: Uint8Array[] = []
  let size = 0
  let end = 0

  function keep(piece: Uint8Array): void {
    size += piece.length
    end += piece.length
    if (size <= longest) kept.push(piece)
  }

  function cut(isWhole: boolean): RawLine {
    const bytes = size > longest ? undefined : kept.length === 1 ? kept[0] : Buffer.concat(kept)
    if (isWhole) end++
    kept = []
    size = 0
    return { bytes, end, isWhole }
  }

  function* cutChunk(chunk: Uint8Array): Generator<RawLine> {
    let start = 0
    for (let stop = chunk.indexOf(newline); stop >= 0; stop = chunk.indexOf(newline, start)) {
      keep(chunk.subarray(start, stop))
      yield cut(true)
      start = stop + 1
    }
    if (start < chunk.length) keep(chunk.subarray(start))
  }

  for await (const chunk of chunks) yield cutChunk(chunk)
  if (size > 0) yield [cut(false)]
}
