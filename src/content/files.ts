import { usageError } from '../errors.ts'
import { detectMimeType, isPdf } from '../io/file-kind.ts'
import type { Input } from '../io/input.ts'
import { decodeUtf8, isUtf16, tryDecodeUtf8 } from '../io/utf8.ts'
import { maxTextLength } from '../wire/json/body-text.ts'

/** A file for a request. The text of stdin has no name. */
export type GivenFile = { name?: string; text: string } | { mimeType: string; base64: string }

/** File types that a service accepts in addition to text. */
export interface FileKinds {
  mimeTypes: RegExp
  /** Description: `an image or PDF file`. */
  description: string
}

/** Returns how to give a file through stdin, for a stdin that is not text. */
export const createFileAdvice = ({ description }: FileKinds): string => `-f - adds ${description}`

/**
 * Reads a file, or stdin for `-`. Returns text, or base64 with the type that the bytes show. Throws a usage
 * error for other types.
 */
export async function readGivenFile(
  input: Input,
  path: string,
  { mimeTypes, description }: FileKinds,
): Promise<GivenFile> {
  const bytes = await input.readBytes(path, '-f -')
  const name = path === '-' ? 'stdin' : path
  if (bytes.length === 0) throw usageError(`${name}: ${path === '-' ? 'it' : 'the file'} is empty`)
  // Text is tried first, because a sentence may begin with a magic number such as BMP's.
  const text = isPdf(bytes) || bytes.includes(0) ? undefined : tryDecodeUtf8(bytes)
  if (text !== undefined) return path === '-' ? { text } : { name: path, text }
  // UTF-16's byte order mark looks like the start of an MP3 file.
  const mimeType = isUtf16(bytes) ? undefined : await detectMimeType(bytes)
  if (mimeType && mimeTypes.test(mimeType)) {
    if (bytes.length > maxFileBytes)
      throw usageError(`${name}: longer than 384 MiB, the most that fits into a request`)
    return { mimeType, base64: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64') }
  }
  // Text in another character set has no NUL, except UTF-16. Such text gets the error for text that is not
  // UTF-8.
  if (!mimeType && (!bytes.includes(0) || isUtf16(bytes))) decodeUtf8(bytes, name)
  const kind = mimeType === undefined ? '' : `: it is ${mimeType}`
  throw usageError(`${name}: neither UTF-8 text nor ${description}${kind}`)
}

/** Base64 is a third longer, and must fit into a string. */
const maxFileBytes = Math.floor(maxTextLength / 4) * 3
