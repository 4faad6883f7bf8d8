import { describe, expect, test } from 'vitest'
import { answering } from '../../harness/run.ts'
import { image, imageAnswer, inline, parts, png } from './image.ts'

describe('search for images in an answer', () => {
  const data = png().toString('base64')
  const wrapped = data.replace(/.{20}/g, '$&\r\n')

  test.each([
    ['inlineData', inline(png())],
    ['inlineData without a MIME type', { inlineData: { data } }],
    ['a data URI', { text: `data:image/png;base64,${data}` }],
    ['a data URI in Markdown', { text: `Look: ![fox](data:image/png;base64,${wrapped}) nice` }],
    ['base64 with line breaks', { inlineData: { mimeType: 'image/png', data: wrapped } }],
  ])('image finds an image in %s', async (_, part) => {
    const ended = await image(['fox'], parts(part))
    expect(ended).toMatchObject({ code: 0, out: 'fox.png\n', files: ['fox.png'] })
    expect(ended.read('fox.png')).toEqual(png())
  })

  test('image finds images in all candidates and in message blocks', async () => {
    const candidate = (shade: number) => ({ content: { parts: [inline(png(shade))] } })
    const native = answering(
      JSON.stringify({ candidates: [candidate(1), {}, { content: null }, candidate(2)] }),
    )
    expect((await image(['x'], { exchange: native })).out).toBe('x.png\nx-2.png\n')
    const text = `data:image/png;base64,${data}`
    const message = answering(JSON.stringify({ content: [{ type: 'text', text }] }))
    expect((await image(['x'], { exchange: message })).out).toBe('x.png\n')
  })

  test('image finds a long image in base64 with escaped or plain slashes', async () => {
    const large = Buffer.concat([png(), Buffer.alloc(300_000, 0xff)])
    const plain = imageAnswer({ text: '"quoted\\' }, inline(large), inline(png(3)))
    for (const body of [plain, plain.replaceAll('/', '\\/')]) {
      const halves = [body.slice(0, 100_001), body.slice(100_001)]
      const ended = await image(['x'], { exchange: answering(halves) })
      expect(ended).toMatchObject({ code: 0, out: 'x.png\nx-2.png\n', err: '| "quoted\\\n' })
      expect(ended.read('x.png').equals(large)).toBe(true)
      expect(ended.read('x-2.png')).toEqual(png(3))
    }
  })

  test.each(['iVBORw0KGgo*', ''])(
    'image exits with 8 for the data "%s", which is not an image in base64',
    async (wrong) => {
      const ended = await image(['x'], parts({ inlineData: { mimeType: 'image/png', data: wrong } }))
      expect(ended).toMatchObject({ code: 8, out: '', files: [] })
      expect(ended.err).toContain('not valid base64')
    },
  )

  test('image exits with 8 for a broken image, and saves the other images', async () => {
    const broken = { inlineData: { mimeType: 'image/png', data: '*' } }
    const ended = await image(['x'], parts(inline(png(1)), broken, inline(png(2))))
    expect(ended).toMatchObject({ code: 8, out: 'x.png\nx-2.png\n', files: ['x-2.png', 'x.png'] })
  })
})
