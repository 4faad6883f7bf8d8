const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

/** Enough for every magic number. Bytes. */
const sampleLength = 4100

/** What a file that is not text is, by its first bytes: its MIME type. */
export async function detectMimeType(bytes: Uint8Array): Promise<string | undefined> {
  const sample = bytes.subarray(0, sampleLength)
  // The usual case first: loading the library takes time, and it recognizes a PNG only by whole chunks.
  if (pngSignature.equals(sample.subarray(0, pngSignature.length))) return 'image/png'
  const { fileTypeFromBuffer } = await import('file-type')
  return (await fileTypeFromBuffer(sample))?.mime
}

/** Whether it begins as a PDF file, which may have nothing else in it that is not text. */
export const isPdf = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.subarray(0, 5)).toString('latin1') === '%PDF-'
