export interface RawLine {
  lineNumber: number
  /** `undefined` if the line is longer than `maxLineBytes`. */
  bytes: Uint8Array | undefined
  /** Offset of the next line. */
  endOffsetBytes: number
  /** `false` for the text after the last line break. */
  isWhole: boolean
}

const newline = 0x0a

/**
 * Splits chunks into lines. The caller must read all lines of a chunk before the next chunk. Creates the
 * lines one by one, because a batch works on a chunk for a long time. V8 would move a list of the lines to
 * the old generation, which V8 frees late.
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<Iterable<RawLine>, void, undefined> {
  let pieces: Uint8Array[] = []
  let size = 0
  let lineNumber = 0
  let endOffsetBytes = 0

  function append(piece: Uint8Array): void {
    size += piece.length
    endOffsetBytes += piece.length
    if (size <= maxLineBytes) pieces.push(piece)
  }

  function cut(isWhole: boolean): RawLine {
    const bytes = size > maxLineBytes ? undefined : pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
    lineNumber++
    if (isWhole) endOffsetBytes++
    pieces = []
    size = 0
    return { lineNumber, bytes, endOffsetBytes, isWhole }
  }

  function* cutChunk(chunk: Uint8Array): Generator<RawLine> {
    let start = 0
    for (let stop = chunk.indexOf(newline); stop >= 0; stop = chunk.indexOf(newline, start)) {
      append(chunk.subarray(start, stop))
      yield cut(true)
      start = stop + 1
    }
    if (start < chunk.length) append(chunk.subarray(start))
  }

  for await (const chunk of chunks) yield cutChunk(chunk)
  if (size > 0) yield [cut(false)]
}
