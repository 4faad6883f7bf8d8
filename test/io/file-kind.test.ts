import { expect, test } from 'vitest'
import { detectMimeType } from '../../src/io/file-kind.ts'

test('parley detects a PNG by its signature alone', async () => {
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  expect(await detectMimeType(signature)).toBe('image/png')
  expect(await detectMimeType(signature.subarray(1))).toBeUndefined()
})
