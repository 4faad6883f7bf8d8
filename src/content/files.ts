import { usage } from '../errors.ts'
import type { Input } from '../io/input.ts'
import { tryDecodeUtf8 } from '../io/utf8.ts'
import { longestText } from '../wire/json/encoder.ts'
import type { Part } from './body.ts'

/**
 * Reads a file, or stdin for `-`, into parts of a turn: text as the file's name and the text; an image, audio, video or
 * PDF file, recognized by its bytes, as inline data.
 */
export async function readFileParts(input: Input, path: string): Promise<Part[]> {
  const bytes = await input.bytes(path, '-f -')
  const name = path === '-' ? 'stdin' : path
  if (bytes.length === 0) throw usage(`${name}: ${path === '-' ? 'it' : 'the file'} is empty`)
  const isPdf = Buffer.from(bytes.subarray(0, 5)).toString('latin1') === '%PDF-'
  // Text is tried first: a sentence may begin with a magic number such as BMP's.
  const text = isPdf || bytes.includes(0) ? undefined : tryDecodeUtf8(bytes)
  if (text !== undefined) return path === '-' ? [{ text }] : [{ text: `${path}:\n` }, { text }]
  const { fileTypeFromBuffer } = await import('file-type')
  const mimeType = (await fileTypeFromBuffer(bytes))?.mime
  if (mimeType && /^(image|audio|video)\/|^application\/pdf$/.test(mimeType)) {
    if (bytes.length > longestFile)
      throw usage(`${name}: longer than 384 MiB, the most that fits into a request`)
    return [{ inlineData: { mimeType, data: asBuffer(bytes).toString('base64') } }]
  }
  throw usage(`${name}: neither UTF-8 text nor an image, audio, video or PDF file`)
}

/** Its base64 must fit into a text. */
const longestFile = Math.floor(longestText / 4) * 3

const asBuffer = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length)
