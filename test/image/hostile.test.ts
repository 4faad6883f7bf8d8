import { describe, expect, test } from 'vitest'
import { readBodyValues } from '../../src/wire/model/body-values.ts'
import { splitDataUris } from '../../src/wire/model/data-uri.ts'
import { findImages } from '../../src/wire/model/found-images.ts'

const size = 2 ** 20
const fill = (pattern: string) => pattern.repeat(Math.ceil(size / pattern.length))

/** Seconds of processor time. */
function timeOf(work: () => unknown): number {
  const start = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1e6
}

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

describe('I39 a mebibyte of one pattern takes less than a second', () => {
  test.each(patterns)('in a text: %j', (pattern) => {
    for (const text of [
      fill(pattern),
      `[a](${image})${fill(pattern)}`,
      `[a](data:image/x;${fill(pattern)}`,
    ]) {
      expect(timeOf(() => splitDataUris(text))).toBeLessThan(1)
    }
  })

  test.each(patterns)('in a body and in a stream of events: %j', (pattern) => {
    for (const [body, type] of [
      [fill(pattern), ''],
      [`{"content":[{"text":"${fill(pattern)}`, ''],
      [JSON.stringify({ content: [{ text: fill(pattern) }] }), ''],
      [fill(pattern), 'text/event-stream'],
      [`data: ${fill(pattern)}`, 'text/event-stream'],
    ] as const) {
      const read = () => {
        try {
          findImages(readBodyValues(Buffer.from(body), type).values)
        } catch (error) {
          expect(error).toMatchObject({ kind: 'response' })
        }
      }
      expect(timeOf(read)).toBeLessThan(1)
    }
  })
})

test('I40 hundreds of thousands of parts and images are found without running out of stack', () => {
  const many = 150_000
  const part = `{"text":"data:image/x;base64,${data} data:image/x;base64,${data}"}`
  const wide = `{"content":[${`${part},`.repeat(many)}${part}]}`
  expect(findImages(readBodyValues(Buffer.from(wide), '').values).images).toHaveLength(many * 2 + 2)
  const text = fill(`${image} `)
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
