import { findMimeType } from '../../io/file-kind.ts'

/** The extension of each kind of image that is known. */
const extensions = new Map(
  Object.entries({
    'image/png': 'png',
    'image/apng': 'png',
    'image/jpeg': 'jpg',
    'image/jpg': 'jpg',
    'image/webp': 'webp',
    'image/gif': 'gif',
    'image/avif': 'avif',
    'image/bmp': 'bmp',
    'image/x-ms-bmp': 'bmp',
    'image/tiff': 'tiff',
    'image/heic': 'heic',
    'image/heif': 'heic',
    'image/heic-sequence': 'heic',
    'image/heif-sequence': 'heic',
  }),
)

export interface Format {
  /** Absent if neither the bytes nor the MIME type say a known kind. */
  extension?: string
  /** The service says another kind. */
  isMislabelled: boolean
}

/** Recognizes the kind of an image by its bytes, or if they do not show it, by its MIME type. */
export async function recognizeFormat(bytes: Uint8Array, mimeType = ''): Promise<Format> {
  const claim = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await findMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (claim === 'image/svg+xml' && isPlain) return { extension: 'svg', isMislabelled: false }
  // Bytes that are known not to be an image get no image's extension, whatever the service says.
  const extension = extensions.get(found ?? claim)
  return { extension, isMislabelled: claim !== '' && extensions.get(claim) !== extension }
}

/** Other extensions for the same kind. */
const sameKind = new Map(
  Object.entries({
    jpeg: 'jpg',
    jpe: 'jpg',
    jfif: 'jpg',
    tif: 'tiff',
    heif: 'heic',
    apng: 'png',
  }),
)

/** Whether a file's name says another kind than its bytes. */
export function disagrees(name: string, extension: string): boolean {
  const said = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return said !== undefined && (sameKind.get(said) ?? said) !== extension
}
