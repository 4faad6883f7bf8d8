import { usageError } from '../errors.ts'
import { detectMimeType, isPdf } from '../io/file-kind.ts'
import type { Input } from '../io/input.ts'
import { decodeUtf8, isUtf16, tryDecodeUtf8 } from '../io/utf8.ts'
import { longestText } from '../wire/json/body-text.ts'

/** A file that goes into a request; stdin's text has no name. */
export type GivenFile = { name?: string; text: string } | { mimeType: string; base64: string }

/** What a service takes beside text. */
export interface FileKinds {
  mimeTypes: RegExp
  /** In words: `an image or PDF file`. */
  named: string
}

/** Reads a file, or stdin for `-`: as text, or as what its bytes show it to be. Throws a usage error for any other kind. */
export async function readGivenFile(
  input: Input,
  path: string,
  { mimeTypes, named }: FileKinds,
): Promise<GivenFile> {
  const bytes = await input.readBytes(path, '-f -')
  const name = path === '-' ? 'stdin' : path
  if (bytes.length === 0) throw usageError(`${name}: ${path === '-' ? 'it' : 'the file'} is empty`)
  // Text is tried first: a sentence may begin with a magic number such as BMP's.
  const text = isPdf(bytes) || bytes.includes(0) ? undefined : tryDecodeUtf8(bytes)
  if (text !== undefined) return path === '-' ? { text } : { name: path, text }
  // Its byte order mark looks like the beginning of sound.
  const mimeType = isUtf16(bytes) ? undefined : await detectMimeType(bytes)
  if (mimeType && mimeTypes.test(mimeType)) {
    if (bytes.length > longestFile)
      throw usageError(`${name}: longer than 384 MiB, the most that fits into a request`)
    return { mimeType, base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64') }
  }
  // Text in another character set has no NUL, but for UTF-16.
  if (!mimeType && (!bytes.includes(0) || isUtf16(bytes))) decodeUtf8(bytes, name)
  const kind = mimeType === undefined ? '' : `: it is ${mimeType}`
  throw usageError(`${name}: neither UTF-8 text nor ${named}${kind}`)
}

/** Its base64 must fit into a text. */
const longestFile = Math.floor(longestText / 4) * 3
