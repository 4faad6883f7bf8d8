import { expect, test } from 'vitest'
import { readBodyValues } from '../../../src/wire/gateway/body-values.ts'
import { findImages, splitDataUris } from '../../../src/wire/gateway/found-images.ts'

const data = 'A'.repeat(32)
const image = `data:image/png;base64,${data}`

test('I40 hundreds of thousands of parts and images are found without running out of stack', () => {
  const many = 150_000
  const part = `{"text":"data:image/x;base64,${data} data:image/x;base64,${data}"}`
  const wide = `{"content":[${`${part},`.repeat(many)}${part}]}`
  expect(findImages(readBodyValues(Buffer.from(wide), '')).images).toHaveLength(many * 2 + 2)
  const text = `${image} `.repeat(20_000)
  expect(splitDataUris(text).images.length).toBeGreaterThan(15_000)
})
