import { detectMimeType, tryDecodeUtf8 } from '../../io/file-content.ts'

const extensions = ['png', 'jpg', 'webp', 'gif', 'avif', 'bmp', 'tiff', 'heic']

const canonicalExtensions = new Map([
  ['jpeg', 'jpg'],
  ['jpe', 'jpg'],
  ['jfif', 'jpg'],
  ['tif', 'tiff'],
  ['heif', 'heic'],
  ['apng', 'png'],
])

const normalizeExtension = (name: string) => canonicalExtensions.get(name) ?? name

function getExtension(mimeType: string): string | undefined {
  const [, name = ''] = /^image\/(?:x-ms-)?(.*?)(?:-sequence)?$/.exec(mimeType) ?? []
  return extensions.find((extension) => extension === normalizeExtension(name))
}

interface ImageFormat {
  extension: string
  /** End of a warning, if the image may be damaged. */
  problem: string | undefined
}

/**
 * Returns the format of the bytes. If it is unknown, returns the format that the MIME type declares. Returns
 * `undefined` for a text, for a file that is not an image, and if both formats are unknown.
 */
export async function detectImageFormat(bytes: Uint8Array, mimeType = ''): Promise<ImageFormat | undefined> {
  const declaredType = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (declaredType === 'image/svg+xml' && isPlain) return { extension: 'svg', problem: undefined }
  // The detected type has precedence over the declared type, so a file that is not an image never gets an
  // image extension.
  const extension = found === undefined && isText(bytes) ? undefined : getExtension(found ?? declaredType)
  return extension === undefined ? undefined : { extension, problem: findProblem(bytes, found) }
}

const isText = (bytes: Uint8Array): boolean => !bytes.includes(0) && tryDecodeUtf8(bytes) !== undefined

const endMarkers: Record<string, string> = { 'image/png': 'IEND', 'image/jpeg': '\xff\xd9' }

function findProblem({ buffer, byteOffset, length }: Uint8Array, type: string | undefined) {
  if (type === undefined) return 'its format is unknown, so the image may be damaged'
  const marker = endMarkers[type]
  // Other data may follow the end of an image.
  const isCut = marker && Buffer.from(buffer, byteOffset, length).lastIndexOf(marker, undefined, 'latin1') < 0
  return isCut ? 'the image has no end marker, so it may be cut off' : undefined
}

export function hasWrongImageExtension(name: string, extension: string): boolean {
  const given = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return given !== undefined && normalizeExtension(given) !== extension
}
