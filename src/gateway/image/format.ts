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

/**
 * Returns the file extension for the format of the bytes. If the format is unknown, returns the extension for
 * the MIME type, or `undefined` if that is unknown, too.
 */
export async function findImageExtension(bytes: Uint8Array, mimeType = ''): Promise<string | undefined> {
  const declaredType = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (declaredType === 'image/svg+xml' && isPlain) return 'svg'
  // The detected type has precedence over the declared type, so a file that is not an image never gets an
  // image extension.
  return getExtension(found ?? declaredType)
}

export function hasWrongImageExtension(name: string, extension: string): boolean {
  const given = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return given !== undefined && normalizeExtension(given) !== extension
}
