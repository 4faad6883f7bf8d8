import { collectBody } from './exchange.ts'

export interface BodyTextDecoder {
  /** Without `stream`, `bytes` is the last chunk or the whole body. */
  decode(bytes?: Uint8Array, options?: { stream?: boolean }): string
  /**
   * Returns the declared charset if the decoder decoded UTF-8 instead, because the charset is unknown or the
   * stream began as UTF-8. Invalid bytes then became U+FFFD.
   */
  ignoredCharset(): string | undefined
  /** True if invalid bytes became U+FFFD. */
  isDamaged(): boolean
}

/**
 * The declared charset is often wrong, so valid UTF-8 is decoded as UTF-8. In a stream, only the first run of
 * non-ASCII bytes is tested, because parley prints its text before the rest arrives.
 */
export function createBodyTextDecoder(contentType: string): BodyTextDecoder {
  const { charset, declared } = readCharset(contentType)
  let chosen = declared ? undefined : createUtf8Decoder()
  let ignored = declared ? undefined : charset
  let pending: Uint8Array = new Uint8Array()
  let hasText = false
  let isDamaged = false
  let last: Uint8Array = new Uint8Array()

  function decodeWith(decoder: CharsetDecoder, bytes: Uint8Array, stream: boolean): string {
    const text = decoder.decode(bytes, { stream })
    if (!isDamaged) {
      if (text.includes('\ufffd')) isDamaged = hasInvalidBytes(decoder, last, bytes, stream)
      last = new Uint8Array(concat(last, bytes.subarray(-maxIncompleteBytes)).subarray(-maxIncompleteBytes))
    }
    return text
  }

  return {
    decode(bytes = new Uint8Array(), { stream = false } = {}) {
      if (chosen) return decodeWith(chosen, bytes, stream)
      if (!declared) return ''
      const all = pending.length > 0 ? Buffer.concat([pending, bytes]) : bytes
      const choice = chooseDecoder(all, declared, stream)
      if (typeof choice === 'number') {
        pending = all.subarray(choice)
        hasText ||= choice > 0
        return createUtf8Decoder().decode(all.subarray(0, choice))
      }
      const isUtf8 = choice.encoding === 'utf-8'
      // U+FEFF is a byte order mark only at the start of a body.
      chosen = isUtf8 && hasText ? new TextDecoder('utf-8', { ignoreBOM: true }) : choice
      if (isUtf8 && stream) ignored = charset
      return decodeWith(chosen, all, stream)
    },
    ignoredCharset: () => ignored,
    isDamaged: () => isDamaged,
  }
}

/** The longest UTF-8 character has 4 bytes. */
const maxIncompleteBytes = 3

const concat = (one: Uint8Array, other: Uint8Array): Uint8Array =>
  one.length === 0 ? other : Buffer.concat([one, other])

/**
 * Returns false for U+FFFD in the text itself. `last` is the end of the chunk before `bytes`, and may start
 * inside a character.
 */
function hasInvalidBytes(
  { encoding }: CharsetDecoder,
  last: Uint8Array,
  bytes: Uint8Array,
  isCut: boolean,
): boolean {
  if (encoding !== 'utf-8') return true
  const start = last.findIndex((byte) => byte < 0x80 || byte > 0xbf)
  return !isUtf8(concat(start < 0 ? new Uint8Array() : last.subarray(start), bytes), isCut)
}

export const decodeBodyText = (bytes: Uint8Array, contentType = ''): string =>
  createBodyTextDecoder(contentType).decode(bytes)

export function toUtf8(bytes: Uint8Array, contentType: string): Uint8Array {
  const { declared } = readCharset(contentType)
  const decoder = declared && chooseDecoder(bytes, declared, false)
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

/** Reads the charset, unless it is UTF-8. `declared` is Node's decoder for the charset, if there is one. */
function readCharset(contentType: string): { charset?: string; declared?: CharsetDecoder | undefined } {
  const charset = findCharset(contentType)
  return charset === undefined ? {} : { charset, declared: findDecoder(charset) }
}

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

const windows1252 = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

/** Some versions of Node decode Latin-1 instead, which has control characters from 0x80 to 0x9f. */
const createWindows1252Decoder = (decoder: CharsetDecoder): CharsetDecoder => ({
  encoding: decoder.encoding,
  decode: (bytes, options) =>
    decoder
      .decode(bytes, options)
      .replace(/[\x80-\x9f]/g, (char) => windows1252.charAt(char.charCodeAt(0) - 0x80)),
})

/** Maximum length of the run of non-ASCII bytes that decides the charset of a stream. */
const maxRunBytes = 4096

/**
 * Returns UTF-8 or the declared charset. If a stream's first run of non-ASCII bytes is still incomplete,
 * returns the number of ASCII bytes before it.
 */
function chooseDecoder(
  bytes: Uint8Array,
  declared: CharsetDecoder,
  isMoreExpected: boolean,
): CharsetDecoder | number {
  const { encoding } = declared
  // Text in this charset consists of ASCII bytes, so it would always pass as UTF-8.
  if (encoding === 'iso-2022-jp') return declared
  if (encoding.startsWith('utf-16')) {
    if (bytes.length < 2) return isMoreExpected ? 0 : createUtf8Decoder()
    const order = findByteOrder(bytes)
    if (order) return new TextDecoder(order)
  }
  const asciiBytes = countAscii(bytes)
  const rest = bytes.subarray(asciiBytes)
  if (!isMoreExpected) return isUtf8(rest) ? createUtf8Decoder() : declared
  const run = rest.subarray(0, maxRunBytes)
  const length = run.findIndex((byte) => byte < 0x80)
  if (length >= 0) return isUtf8(run.subarray(0, length)) ? createUtf8Decoder() : declared
  if (run.length < maxRunBytes) return asciiBytes
  return isUtf8(run, true) ? createUtf8Decoder() : declared
}

function findByteOrder([first, second]: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return 'utf-16le'
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== 0)) return 'utf-16be'
  return undefined
}

function countAscii(bytes: Uint8Array): number {
  let count = 0
  while (count < bytes.length && (bytes[count] as number) < 0x80) count++
  return count
}

/** With `isCut`, the last character may be incomplete. */
export function isUtf8(bytes: Uint8Array, isCut = false): boolean {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for (let start = 0; start < bytes.length; start += pieceBytes)
      decoder.decode(bytes.subarray(start, start + pieceBytes), { stream: true })
    if (!isCut) decoder.decode()
    return true
  } catch {
    return false
  }
}
