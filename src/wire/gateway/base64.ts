/** Characters decoded at a time: a multiple of four, because four characters encode three bytes. */
const chunkLength = 32 * 1024

/**
 * Decodes base64 in the standard or URL-safe alphabet, with or without padding and line breaks. Returns
 * `undefined` for any other text, which stays intact. Overwrites base64 without line breaks and returns a view
 * of the same memory, to save the memory of a copy.
 */
export function decodeBase64(text: Uint8Array): Uint8Array | undefined {
  const given = Buffer.from(text.buffer, text.byteOffset, text.length)
  const isWrapped = given.includes('\n') || given.includes('\r')
  const bytes = isWrapped ? Buffer.from(given.filter((byte) => byte !== 0x0a && byte !== 0x0d)) : given
  const padding = /={0,2}$/.exec(bytes.toString('latin1', Math.max(0, bytes.length - 2)))?.[0].length ?? 0
  const end = bytes.length - padding
  if (end <= 0 || end % 4 === 1 || (padding > 0 && bytes.length % 4 > 0)) return undefined
  const readChunk = (start: number) => bytes.toString('latin1', start, Math.min(start + chunkLength, end))
  for (let start = 0; start < end; start += chunkLength)
    if (!/^[\w+/-]*$/.test(readChunk(start))) return undefined
  let length = 0
  for (let start = 0; start < end; start += chunkLength)
    length += bytes.write(readChunk(start), length, 'base64')
  return bytes.subarray(0, length)
}
