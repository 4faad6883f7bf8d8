import { describe, expect, test } from 'vitest'
import { readBodyValues } from '../../../src/wire/gateway/body-values.ts'
import { splitDataUris } from '../../../src/wire/gateway/data-uri.ts'
import { findImages } from '../../../src/wire/gateway/found-images.ts'
import { readInTime } from '../../harness/cost.ts'

const fill = (pattern: string, size: number) => pattern.repeat(Math.ceil(size / pattern.length))

const data = 'A'.repeat(32)
const image = `data:image/png;base64,${data}`
const patterns = [
  'data:image/',
  'data:image/x;a=',
  'data:image/x;base64,',
  ';a=',
  '[',
  ']',
  '](',
  '![',
  '[](',
  '[a](" ',
  `[a](${image})`,
  `![](${image} "`,
  `[](${image}    `,
  `[${image}`,
  ' ',
  '"',
  '\\',
  '\n',
  '\r',
  '{',
  ':',
  'data:',
  'data:\n',
]

/** Texts that are full of a pattern. */
const texts: ((much: string) => string)[] = [
  (much) => much,
  (much) => `[a](${image})${much}`,
  (much) => `[a](data:image/x;${much}`,
]

const bodies: [type: string, body: (much: string) => string][] = [
  ['', (much) => much],
  ['', (much) => `{"content":[{"text":"${much}`],
  ['', (much) => JSON.stringify({ content: [{ text: much }] })],
  ['text/event-stream', (much) => much],
  ['text/event-stream', (much) => `data: ${much}`],
]

describe('I39 a mebibyte of one pattern takes less than a second', () => {
  test.each(patterns)('in a text: %j', async (pattern) => {
    for (const text of texts) await readInTime((size) => splitDataUris(text(fill(pattern, size))), 1)
  })

  test.each(patterns)('in a body and in a stream of events: %j', async (pattern) => {
    for (const [type, body] of bodies) {
      await readInTime((size) => {
        try {
          findImages(readBodyValues(Buffer.from(body(fill(pattern, size))), type).values)
        } catch (error) {
          expect(error).toMatchObject({ kind: 'response' })
        }
      }, 1)
    }
  })
})

test('I40 hundreds of thousands of parts and images are found without running out of stack', () => {
  const many = 150_000
  const part = `{"text":"data:image/x;base64,${data} data:image/x;base64,${data}"}`
  const wide = `{"content":[${`${part},`.repeat(many)}${part}]}`
  expect(findImages(readBodyValues(Buffer.from(wide), '').values).images).toHaveLength(many * 2 + 2)
  const text = fill(`${image} `, 2 ** 20)
  expect(splitDataUris(text).images.length).toBeGreaterThan(15_000)
}, 30_000)

test('Markdown around an image goes, but for its words', () => {
  const before = [
    `a ![fox](${image}) b`,
    `a [fox](${image} "A fox") b`,
    `a (${image}) b`,
    `a ]( ![](x) ${image} b`,
  ]
  expect(before.map((text) => splitDataUris(text).text)).toEqual([
    'a fox b',
    'a fox b',
    'a () b',
    'a ]( ![](x)  b',
  ])
  expect(splitDataUris(`[not](here) [a [b](${image})`).text).toBe('[not](here) [a b')
})
