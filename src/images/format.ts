/** Every kind of image that a file is named for. */
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
  /** Absent where neither the bytes nor the MIME type tell of a known kind. */
  extension?: string | undefined
  /** Something else than the service says. */
  isMislabelled: boolean
}

/** What kind of image it is: by its bytes, and where they do not tell, by its MIME type. */
export async function recognizeFormat(bytes: Uint8Array, mimeType = ''): Promise<Format> {
  const claim = mimeType.replace(/;.*/s, '').trim().toLowerCase()
  const found = await findType(bytes)
  const isPlain = found === undefined || found === 'application/xml'
  if (claim === 'image/svg+xml' && isPlain) return { extension: 'svg', isMislabelled: false }
  // What is known to be no image is not named like one, whatever the service says.
  const extension = extensions.get(found ?? claim)
  return {
    ...(extension === undefined ? {} : { extension }),
    isMislabelled: claim !== '' && extensions.get(claim) !== extension,
  }
}

const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** Enough for every magic number. Bytes. */
const sampleLength = 4100

async function findType(bytes: Uint8Array): Promise<string | undefined> {
  const sample = bytes.subarray(0, sampleLength)
  // The usual case, without the time that loading the library takes; the library also wants whole chunks.
  if (pngSignature.equals(sample.subarray(0, pngSignature.length))) return 'image/png'
  const { fileTypeFromBuffer } = await import('file-type')
  return (await fileTypeFromBuffer(sample))?.mime
}

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
