import { expect, test } from 'vitest'
import { answering } from '../../harness/run.ts'
import { image, imageAnswer, inline, parts, png } from './image.ts'

const uri = 'https://files.test/../../etc/passwd?sig=1'
const linked = imageAnswer({ fileData: { mimeType: 'image/png', fileUri: uri } })

test('I14: image prints links to images without requesting them, and saves no file', async () => {
  const ended = await image(['x'], { exchange: answering(linked) })
  expect(ended).toMatchObject({ code: 0, out: `${uri}\n`, files: [] })
  expect(ended.requests).toHaveLength(1)
  expect(ended.err).toContain('links to an image, which is not downloaded')
})

test('image -o - exits with 8 if the answer has only a link, and otherwise writes the image', async () => {
  const alone = await image(['x', '-o', '-'], { exchange: answering(linked) })
  expect(alone).toMatchObject({ code: 8, out: '', err: expect.stringContaining(uri) })
  expect(alone.err).toContain(`  the answer:\n  | ${uri}\n`)
  const both = await image(['x', '-o', '-'], parts({ fileData: { fileUri: uri } }, inline(png())))
  expect(Buffer.from(both.outBytes)).toEqual(png())
})
