import { notUnderstood } from './problem/not-understood.ts'

/** Decodes the bytes of a body that arrive cut anywhere; `isLast` with the last ones. */
export type TextDecoding = (bytes: Uint8Array, isLast?: boolean) => string

const lineFeed = 0x0a

/**
 * JSON and event streams are UTF-8, and so is what calls itself something else, more often than not: a line that
 * is valid UTF-8 counts as that. With the first one that is not, the character set holds that the content type
 * names. Throws a `CliError` there where nobody knows it.
 */
export function createTextDecoding(contentType: string): TextDecoding {
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1]?.toLowerCase() ?? 'utf-8'
  const unicode = new TextDecoder()
  if (/^utf-?8$/.test(charset)) return (bytes, isLast) => unicode.decode(bytes, { stream: !isLast })

  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let declared: ReturnType<typeof decoderOf> | undefined
  let kept: Uint8Array[] = []

  /** Whole lines, or the last one. */
  function decodeLines(bytes: Uint8Array): string {
    if (!declared && isUnicode(bytes)) return unicode.decode(bytes, { stream: true })
    declared ??= decoderOf(charset)
    return declared.decode(bytes, { stream: true })
  }

  function isUnicode(bytes: Uint8Array): boolean {
    try {
      strict.decode(bytes)
      // UTF-16 is full of it, and neither JSON nor an event stream may have it.
      return !bytes.includes(0)
    } catch {
      return false
    }
  }

  return (bytes, isLast = false) => {
    let text = ''
    let start = 0
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, start)) {
      text += decodeLines(Buffer.concat([...kept, bytes.subarray(start, end + 1)]))
      kept = []
      start = end + 1
    }
    kept.push(bytes.subarray(start))
    if (!isLast) return text
    text += decodeLines(Buffer.concat(kept))
    return text + (declared ?? unicode).decode()
  }
}

function decoderOf(charset: string) {
  try {
    return new TextDecoder(charset)
  } catch {
    throw notUnderstood(`the answer is in an unknown character set, ${charset}`)
  }
}
