/** How much of a text is converted at a time, in UTF-16 units, so that it takes little memory. */
const piece = 256 * 1024

/** The longest string that V8 allows, in UTF-16 units; a body has at most as many bytes. */
export const longestText = 0x1fffffe8

/** A piece of a JSON text: `json` as it is, `text` as the contents of a string. */
export type JsonPart = { json: string } | { text: string }

/** A value's JSON in pieces, without a copy of its long texts. */
export function* partsOf(value: unknown): Generator<JsonPart> {
  if (typeof value === 'string' && value.length > piece) {
    yield { json: '"' }
    yield { text: value }
    yield { json: '"' }
  } else if (isShort(value)) yield { json: JSON.stringify(value) }
  else {
    const isList = Array.isArray(value)
    yield { json: isList ? '[' : '{' }
    for (const [index, [name, child]] of Object.entries(value as object).entries()) {
      if (index > 0) yield { json: ',' }
      if (!isList) yield { json: `${JSON.stringify(name)}:` }
      yield* partsOf(child)
    }
    yield { json: isList ? ']' : '}' }
  }
}

/** Whether all its texts together are no longer than a piece. */
function isShort(value: unknown): boolean {
  let left = piece
  const take = (each: unknown): boolean => {
    if (typeof each === 'string') left -= each.length
    else if (typeof each === 'object' && each !== null)
      return Object.entries(each).every(([name, child]) => take(name) && take(child))
    return left >= 0
  }
  return take(value)
}

/**
 * Joins the parts of a JSON text as bytes in UTF-8. It makes no text of the whole, which would take twice the memory.
 * Returns `undefined` beyond `most` bytes.
 */
export function encodeJson(parts: Iterable<JsonPart>, most = longestText): Uint8Array | undefined {
  let bytes: Buffer = Buffer.alloc(0)
  let size = 0
  for (const part of parts) {
    const isText = 'text' in part
    const whole = isText ? part.text : part.json
    for (let start = 0; start < whole.length; ) {
      const end = endOfPiece(whole, start)
      const next = whole.slice(start, end)
      const json = isText ? JSON.stringify(next).slice(1, -1) : next
      // A UTF-16 unit takes three bytes at most.
      if (size + json.length * 3 > bytes.length) bytes = grown(bytes, size + json.length * 3)
      size += bytes.write(json, size)
      if (size > most) return undefined
      start = end
    }
  }
  return bytes.subarray(0, size)
}

/** Where a piece ends: never between the two halves of a character. */
export function endOfPiece(text: string, start: number): number {
  const end = start + piece
  return (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end + 1 : Math.min(end, text.length)
}

/** A larger copy. It may be much larger than needed: unwritten memory costs nothing, and short ones share a piece. */
function grown(bytes: Buffer, least: number): Buffer {
  const larger = Buffer.allocUnsafe(Math.max(least, bytes.length * 8))
  larger.set(bytes)
  return larger
}
