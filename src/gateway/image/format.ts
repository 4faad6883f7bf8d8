import { detectMimeType } from '../../io/file-kind.ts'

/** File extensions of saved images. */
const extensions = ['png', 'jpg', 'webp', 'gif', 'avif', 'bmp', 'tiff', 'heic']

/** Other file extensions of these formats, each with the extension that parley uses. */
const sameKind = new Map([
  ['jpeg', 'jpg'],
  ['jpe', 'jpg'],
  ['jfif', 'jpg'],
  ['tif', 'tiff'],
  ['heif', 'heic'],
  ['apng', 'png'],
])

const normalizeExtension = (name: string) => sameKind.get(name) ?? name

/** Returns the extension of a MIME type, such as `heic` of `image/heif-sequence`. */
function getExtension(mimeType: string): string | undefined {
  const [, name = ''] = /^image\/(?:x-ms-)?(.*?)(?:-sequence)?$/.exec(mimeType) ?? []
  return extensions.find((extension) => extension === normalizeExtension(name))
}

/**
 * Returns the file extension of an image by its bytes, or else by its MIME type. Returns `undefined` if neither
 * shows a known format.
 */
export async function findFormat(bytes: Uint8Array, mimeType = ''): Promise<string | undefined> {
  const claim = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (claim === 'image/svg+xml' && isPlain) return 'svg'
  // A known format of the bytes counts more than the MIME type, so bytes of another kind never get an image
  // extension.
  return getExtension(found ?? claim)
}

/** Returns true if the file name has the extension of another format. */
export function hasOtherExtension(name: string, extension: string): boolean {
  const given = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return given !== undefined && normalizeExtension(given) !== extension
}
