import { notUnderstood } from './problem/not-understood.ts'

/** Decodes bytes of a body, cut anywhere; `isLast` with the last ones. */
export type TextDecoding = (bytes: Uint8Array, isLast?: boolean) => string

const lineFeed = 0x0a

/**
 * JSON and event streams are UTF-8, and most of them still are when the content type names another character set.
 * So a line that is valid UTF-8 is read as UTF-8; from the first other line on, the named character set applies. Throws
 * a `CliError` at that line if the character set is unknown.
 */
export function createTextDecoding(contentType: string): TextDecoding {
  const charset = /charset\s*=\s*"?([^";\s]+)/i.exec(contentType)?.[1]?.toLowerCase() ?? 'utf-8'
  const unicode = new TextDecoder()
  if (/^utf-?8$/.test(charset)) return (bytes, isLast) => unicode.decode(bytes, { stream: !isLast })

  const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let declared: ReturnType<typeof decoderOf> | undefined
  let kept: Uint8Array[] = []

  /** `bytes` are whole lines, or the last one. */
  function decodeLines(bytes: Uint8Array): string {
    if (!declared && isUnicode(bytes)) return unicode.decode(bytes, { stream: true })
    declared ??= decoderOf(charset)
    return declared.decode(bytes, { stream: true })
  }

  function isUnicode(bytes: Uint8Array): boolean {
    try {
      strict.decode(bytes)
      // UTF-16 is full of zero bytes, and neither JSON nor an event stream may have one.
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
