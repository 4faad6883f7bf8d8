/** A line of a file as it was found there, without its line break. */
export interface CutLine {
  /** `undefined` if it is longer than what was asked for. */
  bytes: Uint8Array | undefined
  /** Where the next line begins. Bytes from the start. */
  end: number
  /** False only for what comes after the last line break. */
  isWhole: boolean
}

const newline = 0x0a

/** Cuts bytes into the lines that end in each chunk. Of a line that is longer than `longest` nothing is kept. */
export async function* cutLines(
  chunks: AsyncIterable<Uint8Array>,
  longest: number,
): AsyncGenerator<CutLine[], void, undefined> {
  let kept: Uint8Array[] = []
  let size = 0
  let end = 0

  function keep(piece: Uint8Array): void {
    size += piece.length
    end += piece.length
    if (size <= longest) kept.push(piece)
  }

  function cut(isWhole: boolean): CutLine {
    const bytes = size > longest ? undefined : kept.length === 1 ? kept[0] : Buffer.concat(kept)
    if (isWhole) end++
    kept = []
    size = 0
    return { bytes, end, isWhole }
  }

  for await (const chunk of chunks) {
    const lines: CutLine[] = []
    let start = 0
    for (let stop = chunk.indexOf(newline); stop >= 0; stop = chunk.indexOf(newline, start)) {
      keep(chunk.subarray(start, stop))
      lines.push(cut(true))
      start = stop + 1
    }
    if (start < chunk.length) keep(chunk.subarray(start))
    yield lines
  }
  if (size > 0) yield [cut(false)]
}
