import { expect, test } from 'vitest'
import { findMimeType } from '../../src/io/file-kind.ts'

test('a PNG is known by its signature, whatever follows', async () => {
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  expect(await findMimeType(signature)).toBe('image/png')
  expect(await findMimeType(signature.subarray(1))).toBeUndefined()
})
