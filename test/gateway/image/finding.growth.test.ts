import { describe, expect, test } from 'vitest'
import { createAnswerDecoder } from '../../../src/wire/gateway/answer-decoder.ts'
import { extractDataUris, ImageFinder } from '../../../src/wire/gateway/found-images.ts'
import { growsWithItsText } from '../../harness/steps.ts'

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

/** Texts full of one pattern. */
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

describe('I39: finds images in a text full of one pattern in linear time', () => {
  test.each(patterns)('in a text: %j', async (pattern) => {
    for (const text of texts) await growsWithItsText((size) => extractDataUris(text(fill(pattern, size))))
  })

  test.each(patterns)('in a body and in a stream of events: %j', async (pattern) => {
    for (const [type, body] of bodies) {
      await growsWithItsText((size) => {
        try {
          const images = new ImageFinder()
          const decoder = createAnswerDecoder(type, { text() {}, images })
          decoder.push(Buffer.from(body(fill(pattern, size))))
          decoder.end()
          images.finish()
        } catch (error) {
          expect(error).toMatchObject({ kind: 'response' })
        }
      })
    }
  })
})
