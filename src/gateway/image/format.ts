import { detectMimeType } from '../../io/file-kind.ts'

/** File extensions of saved images. */
const extensions = ['png', 'jpg', 'webp', 'gif', 'avif', 'bmp', 'tiff', 'heic']

/** Other extensions of these formats, each with the extension that parley uses. */
const canonicalExtensions = new Map([
  ['jpeg', 'jpg'],
  ['jpe', 'jpg'],
  ['jfif', 'jpg'],
  ['tif', 'tiff'],
  ['heif', 'heic'],
  ['apng', 'png'],
])

const normalizeExtension = (name: string) => canonicalExtensions.get(name) ?? name

/** Returns the extension of a MIME type, such as `heic` of `image/heif-sequence`. */
function getExtension(mimeType: string): string | undefined {
  const [, name = ''] = /^image\/(?:x-ms-)?(.*?)(?:-sequence)?$/.exec(mimeType) ?? []
  return extensions.find((extension) => extension === normalizeExtension(name))
}

/**
 * Returns the file extension of an image. Its bytes decide or, if they show no known format, its MIME type.
 * Returns `undefined` for an unknown format.
 */
export async function findFormat(bytes: Uint8Array, mimeType = ''): Promise<string | undefined> {
  const declaredType = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (declaredType === 'image/svg+xml' && isPlain) return 'svg'
  // A type that the bytes show takes precedence, so a file that is not an image never gets an image extension.
  return getExtension(found ?? declaredType)
}

/** Returns true if the file name has the extension of another format. */
export function hasOtherExtension(name: string, extension: string): boolean {
  const given = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return given !== undefined && normalizeExtension(given) !== extension
}
