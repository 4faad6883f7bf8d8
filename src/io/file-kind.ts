const pngSignature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

const sampleLength = 4100

/** Returns `undefined` for text. */
export async function detectMimeType(bytes: Uint8Array): Promise<string | undefined> {
  const sample = bytes.subarray(0, sampleLength)
  // Most images are PNG, and loading the library takes time. The library would also need complete chunks of a
  // PNG, which the sample may cut.
  if (pngSignature.equals(sample.subarray(0, pngSignature.length))) return 'image/png'
  const { fileTypeFromBuffer } = await import('file-type')
  return (await fileTypeFromBuffer(sample))?.mime
}

/** A PDF file may be valid UTF-8, so callers check this before they decode text. */
export const isPdf = (bytes: Uint8Array): boolean =>
  Buffer.from(bytes.subarray(0, 5)).toString('latin1') === '%PDF-'
