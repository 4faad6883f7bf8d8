import { expect, test } from 'vitest'
import { createAnswerDecoder } from '../../../src/wire/gateway/answer-decoder.ts'
import { extractDataUris, ImageFinder } from '../../../src/wire/gateway/found-images.ts'
import { expectLinearWork } from '../../harness/steps.ts'

const fill = (pattern: string, size: number) => pattern.repeat(Math.ceil(size / pattern.length))

const data = 'A'.repeat(32)
const image = `data:image/png;base64,${data}`
const patterns = [
  ...'data:image/ data:image/x;a= data:image/x;base64, ;a= [ ] ]( ![ []( " \\ { : data:'.split(' '),
  ...[
    '[a](" ',
    `[a](${image})`,
    `![](${image} "`,
    `[](${image}    `,
    `[${image}`,
    ' ',
    '\n',
    '\r',
    'data:\n',
  ],
]

/** Texts that consist mostly of one pattern. */
const texts: ((filling: string) => string)[] = [
  (filling) => filling,
  (filling) => `[a](${image})${filling}`,
  (filling) => `[a](data:image/x;${filling}`,
]

const bodies: [type: string, body: (filling: string) => string][] = [
  ['', (filling) => filling],
  ['', (filling) => `{"content":[{"text":"${filling}`],
  ['', (filling) => JSON.stringify({ content: [{ text: filling }] })],
  ['text/event-stream', (filling) => filling],
  ['text/event-stream', (filling) => `data: ${filling}`],
]

test.each(patterns)('I39: image finds images in a text full of %j in linear time', async (pattern) => {
  for (const text of texts) await expectLinearWork((size) => extractDataUris(text(fill(pattern, size))))
})

test.each(patterns)('I39: image finds images in a body full of %j in linear time', async (pattern) => {
  for (const [type, body] of bodies) {
    await expectLinearWork((size) => {
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
