import { expect, test } from 'vitest'
import { describeBinary, findMimeType } from '../../src/io/file-kind.ts'

test.each([
  [undefined, 'binary data'],
  ['', 'binary data'],
  ['image', 'an image'],
  ['image/png', 'an image (PNG)'],
  ['image/x-icon', 'an image (ICON)'],
  ['image/svg+x-xml', 'an image (SVG+X-XML)'],
  ['audio/mpeg', 'sound (MPEG)'],
  ['video/mp4', 'a video (MP4)'],
  ['application/x-gzip', 'binary data (gzip)'],
  ['application/pdf', 'a PDF file'],
  ['application/x-pdf', 'a PDF file'],
])('the MIME type %s is %s', (mimeType, words) => expect(describeBinary(mimeType)).toBe(words))

test('a PNG is known by its signature, whatever follows', async () => {
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  expect(await findMimeType(signature)).toBe('image/png')
  expect(await findMimeType(signature.subarray(1))).toBeUndefined()
})
