import { detectMimeType } from '../../io/file-kind.ts'

/** The extensions that images are saved with. */
const extensions = ['png', 'jpg', 'webp', 'gif', 'avif', 'bmp', 'tiff', 'heic']

/** Other names of the same kinds. */
const sameKind = new Map([
  ['jpeg', 'jpg'],
  ['jpe', 'jpg'],
  ['jfif', 'jpg'],
  ['tif', 'tiff'],
  ['heif', 'heic'],
  ['apng', 'png'],
])

const kindOf = (name: string) => sameKind.get(name) ?? name

/** Such as `heic` of `image/heif-sequence`; `undefined` if the kind is not known. */
function getExtension(mimeType: string): string | undefined {
  const [, name = ''] = /^image\/(?:x-ms-)?(.*?)(?:-sequence)?$/.exec(mimeType) ?? []
  return extensions.find((extension) => extension === kindOf(name))
}

export interface Format {
  /** Absent if neither the bytes nor the MIME type say a known kind. */
  extension?: string
  /** The service says another kind. */
  isMislabelled: boolean
}

/** Recognizes the kind of an image by its bytes, or if they do not show it, by its MIME type. */
export async function recognizeFormat(bytes: Uint8Array, mimeType = ''): Promise<Format> {
  const claim = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await detectMimeType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (claim === 'image/svg+xml' && isPlain) return { extension: 'svg', isMislabelled: false }
  // Bytes that are known not to be an image get no image's extension, whatever the service says.
  const extension = getExtension(found ?? claim)
  return { extension, isMislabelled: claim !== '' && getExtension(claim) !== extension }
}

/** Whether a file's name says another kind than its bytes. */
export function hasOtherExtension(name: string, extension: string): boolean {
  const said = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase()
  return said !== undefined && kindOf(said) !== extension
}
