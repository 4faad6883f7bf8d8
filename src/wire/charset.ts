import { collectBody } from './exchange.ts'

/** Decodes the text of a body, whose bytes may be cut anywhere. */
export interface BodyTextDecoder {
  /** Without `stream` these are the last bytes, or all. */
  decode(bytes?: Uint8Array, options?: { stream?: boolean }): string
  /** The declared charset, if it is unknown or a stream was read as UTF-8 instead: then U+FFFD shows other bytes. */
  ignoredCharset(): string | undefined
}

/**
 * Decodes a body by the charset of its content type. That charset is often wrong, so bytes that are valid UTF-8 are read
 * as UTF-8. Of a stream the first character beyond ASCII decides, because its text is printed as it arrives.
 */
export function createBodyTextDecoder(contentType: string): BodyTextDecoder {
  const charset = findCharset(contentType)
  const declared = charset === undefined ? undefined : findDecoder(charset)
  let chosen = declared ? undefined : createUtf8Decoder()
  let ignored = declared ? undefined : charset
  let pending: Uint8Array = new Uint8Array()
  return {
    decode(bytes = new Uint8Array(), { stream = false } = {}) {
      if (chosen) return chosen.decode(bytes, { stream })
      if (!declared) return ''
      const all = pending.length > 0 ? Buffer.concat([pending, bytes]) : bytes
      const choice = choose(all, declared, stream)
      if (typeof choice === 'number') {
        pending = all.subarray(choice)
        return createUtf8Decoder().decode(all.subarray(0, choice))
      }
      chosen = choice
      if (stream && choice.encoding === 'utf-8') ignored = charset
      return choice.decode(all, { stream })
    },
    ignoredCharset: () => ignored,
  }
}

/** The text of a whole body. */
export const decodeBodyText = (bytes: Uint8Array, contentType = ''): string =>
  createBodyTextDecoder(contentType).decode(bytes)

/** A whole body in UTF-8: the same bytes if they are UTF-8. A text of all of it would take up more memory. */
export function toUtf8(bytes: Uint8Array, contentType: string): Uint8Array {
  const charset = findCharset(contentType)
  const declared = charset === undefined ? undefined : findDecoder(charset)
  const decoder = declared && choose(bytes, declared, false)
  if (typeof decoder !== 'object' || decoder.encoding === 'utf-8') return bytes
  const collected = collectBody()
  for (let start = 0; start < bytes.length; start += pieceBytes)
    collected.add(Buffer.from(decoder.decode(bytes.subarray(start, start + pieceBytes), { stream: true })))
  collected.add(Buffer.from(decoder.decode()))
  return collected.bytes()
}

const pieceBytes = 64 * 1024

interface CharsetDecoder {
  encoding: string
  decode(bytes?: Uint8Array, options?: { stream?: boolean }): string
}

const createUtf8Decoder = (): CharsetDecoder => new TextDecoder()

/** The charset that a content type names, unless it is UTF-8. */
function findCharset(contentType: string): string | undefined {
  const name = /charset\s*=\s*["']?([^"';\s]+)/i.exec(contentType)?.[1]
  return name === undefined || /^utf-?8$/i.test(name) ? undefined : name
}

function findDecoder(charset: string): CharsetDecoder | undefined {
  try {
    const decoder = new TextDecoder(charset)
    return decoder.encoding === 'windows-1252' ? createWindows1252Decoder(decoder) : decoder
  } catch {
    return undefined
  }
}

/** The characters of the bytes 0x80 to 0x9f. */
const windows1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** Some versions of Node decode Latin-1 instead, which has control characters there. */
const createWindows1252Decoder = (decoder: CharsetDecoder): CharsetDecoder => ({
  encoding: decoder.encoding,
  decode: (bytes, options) =>
    decoder
      .decode(bytes, options)
      .replace(/[\x80-\x9f]/g, (char) => windows1252.charAt(char.charCodeAt(0) - 0x80)),
})

/**
 * Chooses between UTF-8 and the declared charset by the first bytes. If these are ASCII and more may come, returns the
 * number of bytes that are certain.
 */
function choose(
  bytes: Uint8Array,
  declared: CharsetDecoder,
  isMoreExpected: boolean,
): CharsetDecoder | number {
  const { encoding } = declared
  // All of its bytes are ASCII.
  if (encoding === 'iso-2022-jp') return declared
  if (encoding.startsWith('utf-16')) {
    if (bytes.length < 2) return isMoreExpected ? 0 : createUtf8Decoder()
    const order = findByteOrder(bytes)
    if (order) return new TextDecoder(order)
  }
  const asciiBytes = countAscii(bytes)
  if (asciiBytes === bytes.length) return isMoreExpected ? asciiBytes : createUtf8Decoder()
  const characters = countUtf8(bytes.subarray(asciiBytes), isMoreExpected)
  if (characters === undefined) return declared
  return characters === 0 ? asciiBytes : createUtf8Decoder()
}

/** Finds the order by a byte order mark, or by the zero byte in a first character of ASCII. */
function findByteOrder([first, second]: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'utf-16le'
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0)) return 'utf-16be'
  return undefined
}

/** The number of bytes before the first one that is not ASCII. */
function countAscii(bytes: Uint8Array): number {
  let count = 0
  while (count < bytes.length && (bytes[count] as number) < 0x80) count++
  return count
}

/** Counts complete characters, or returns `undefined` if the bytes are not UTF-8. The last one may be incomplete in a stream. */
function countUtf8(bytes: Uint8Array, isMoreExpected: boolean): number | undefined {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let count = 0
  try {
    for (let start = 0; start < bytes.length; start += pieceBytes)
      count += decoder.decode(bytes.subarray(start, start + pieceBytes), { stream: true }).length
    if (!isMoreExpected) decoder.decode()
  } catch {
    return undefined
  }
  return count
}
