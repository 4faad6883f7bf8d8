import { expect, test } from 'vitest'
import { createAnswerDecoder } from '../../../src/wire/gateway/answer-decoder.ts'
import { extractDataUris, ImageFinder } from '../../../src/wire/gateway/found-images.ts'

const data = 'A'.repeat(32)
const image = `data:image/png;base64,${data}`

test('I40: image finds images among 150,000 parts without a stack overflow', () => {
  const many = 150_000
  const part = `{"text":"data:image/x;base64,${data}"}`
  const wide = `{"content":[${`${part},`.repeat(many)}${part}]}`
  const images = new ImageFinder()
  const decoder = createAnswerDecoder('', { text() {}, images })
  decoder.push(Buffer.from(wide))
  decoder.end()
  images.finish()
  expect(images.findings.images).toHaveLength(many + 1)
  const text = `${image} `.repeat(20_000)
  expect(extractDataUris(text).images.length).toBeGreaterThan(15_000)
})
