import { detectMimeType } from '../../io/file-content.ts'

const extensions = ['png', 'jpg', 'webp', 'gif', 'avif', 'bmp', 'tiff', 'heic']

/** Maps other extensions of the same formats. */
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

/**
 * Returns the file extension for the format of the bytes or, if that is unknown, for the MIME type. Returns
 * `undefined` if both are unknown.
 */
export async function findImageExtension(bytes: Uint8Array, mimeType = ''): Promise<string | undefined> {
  const declaredType = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (declaredType === 'image/svg+xml' && isPlain) return 'svg'
  // A type that the bytes show takes precedence, so a file that is not an image never gets an image extension.
  return getExtension(found ?? declaredType)
}

export function hasOtherExtension(name: string, extension: string): boolean {
  const given = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return given !== undefined && normalizeExtension(given) !== extension
}
