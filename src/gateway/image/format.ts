import { extname } from 'node:path'
import { detectMimeType } from '../../io/file-content.ts'
import { isMarkup } from '../../wire/markup.ts'

const extensions = ['png', 'jpg', 'webp', 'gif', 'avif', 'bmp', 'tiff', 'heic']

const canonicalExtensions = new Map([
  ['jpeg', 'jpg'],
  ['heif', 'heic'],
  ['apng', 'png'],
])

const normalizeExtension = (name: string) => canonicalExtensions.get(name) ?? name

/** Returns a note if a file name has the extension of another image format. */
export function findWrongExtension(path: string, extension: string): string | undefined {
  const named = getExtension(`image/${extname(path).slice(1).toLowerCase()}`)
  return named === undefined || named === extension ? undefined : `the image has the format ${extension}`
}

function getExtension(mimeType: string): string | undefined {
  const [, name = ''] = /^image\/(?:x-ms-)?(.*?)(?:-sequence)?$/.exec(mimeType) ?? []
  return extensions.find((extension) => extension === normalizeExtension(name))
}

interface ImageFormat {
  extension: string
  /** Text of a warning, if the image may be damaged or cut off. The caller adds the file name before it. */
  problem: string | undefined
}

/**
 * Returns the format of the bytes, or the format that the MIME type declares if the bytes have an unknown
 * format. Returns `undefined` for a web page, for a file that is not an image, and if both formats are
 * unknown.
 */
export async function detectImageFormat(bytes: Uint8Array, mimeType = ''): Promise<ImageFormat | undefined> {
  const declaredType = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const start = Buffer.from(bytes.subarray(0, 1000)).toString()
  const isPlain = (found === undefined && !isHtml(start)) || found === 'application/xml'
  if (declaredType === 'image/svg+xml' && isPlain) return { extension: 'svg', problem: undefined }
  // The detected type is preferred to the declared type, so a file that is not an image never gets an image
  // extension.
  const extension = found === undefined && isMarkup(start) ? undefined : getExtension(found ?? declaredType)
  return extension === undefined ? undefined : { extension, problem: findProblem(bytes, found) }
}

/** Unlike `isMarkup`, returns false for an SVG image. */
const isHtml = (start: string) => /^\s*<(?:!doctype )?html/i.test(start)

function findProblem({ buffer, byteOffset, length }: Uint8Array, type: string | undefined) {
  if (type === undefined) return 'its format is unknown, so the image may be damaged'
  const [name, hasEnd] = endChecks.get(type) ?? []
  return !hasEnd || hasEnd(Buffer.from(buffer, byteOffset, length))
    ? undefined
    : `the ${name} has no end, so it may be cut off`
}

/** Formats with an end that is simple to find. Other data may follow the end of an image. */
const endChecks = new Map<string, [name: string, hasEnd: (bytes: Buffer) => boolean]>([
  ['image/png', ['PNG', (bytes) => bytes.lastIndexOf('IEND') >= 0]],
  ['image/jpeg', ['JPEG', hasJpegEnd]],
  ['image/gif', ['GIF', (bytes) => /;[\0\s]*$/.test(bytes.subarray(-100).toString('latin1'))]],
  ['image/webp', ['WebP', (bytes) => bytes.readUInt32LE(4) + 8 <= bytes.length]],
])

/** Skips the segments before the first scan, because a preview in a segment has its own end marker. */
function hasJpegEnd(bytes: Buffer): boolean {
  let at = 2
  while (at + 4 <= bytes.length && bytes[at] === 0xff && bytes[at + 1] !== 0xda && bytes[at + 1] !== 0xd9)
    at += bytes[at + 1] === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2)
  return bytes.includes('\xff\xd9', at, 'latin1')
}
