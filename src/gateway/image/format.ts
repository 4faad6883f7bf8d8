import { detectMimeType } from '../../io/file-content.ts'

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
 * `undefined` for a web page, for a file that is not an image, and if both formats are unknown.
 */
export async function detectImageFormat(bytes: Uint8Array, mimeType = ''): Promise<ImageFormat | undefined> {
  const declaredType = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (declaredType === 'image/svg+xml' && isPlain) return { extension: 'svg', problem: undefined }
  // The detected type has precedence over the declared type, so a file that is not an image never gets an
  // image extension.
  const extension = found === undefined && isMarkup(bytes) ? undefined : getExtension(found ?? declaredType)
  return extension === undefined ? undefined : { extension, problem: findProblem(bytes, found) }
}

const isMarkup = (bytes: Uint8Array): boolean =>
  /^(?:\xef\xbb\xbf)?\s*</.test(Buffer.from(bytes.subarray(0, 1000)).toString('latin1'))

function findProblem({ buffer, byteOffset, length }: Uint8Array, type: string | undefined) {
  if (type === undefined) return 'its format is unknown, so the image may be damaged'
  // Other data may follow the end of an image, so the marker is searched, not expected at the end.
  const isCut = type === 'image/png' && Buffer.from(buffer, byteOffset, length).lastIndexOf('IEND') < 0
  return isCut ? 'the PNG has no end, so it may be cut off' : undefined
}

export function hasWrongImageExtension(name: string, extension: string): boolean {
  const given = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return given !== undefined && normalizeExtension(given) !== extension
}
