import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { answering, temporaryFolder } from '../../harness/run.ts'
import { image, imageAnswer, inline, parts, png } from './image.ts'

describe('search for images in an answer', () => {
  const data = png().toString('base64')
  const wrapped = data.replace(/.{20}/g, '$&\r\n')
  const bytes = Buffer.concat([png(), Buffer.from([0xfb, 0xff, 0xfe, 0xfb])])

  test.each([
    ['inlineData', inline(png())],
    ['inline_data', { inline_data: { mime_type: 'image/png', data } }],
    ['inlineData with mime_type', { inlineData: { mime_type: 'image/png', data } }],
    ['inlineData without a MIME type', { inlineData: { data } }],
    ['a part that is a thought', { ...inline(png()), thought: true }],
    ['a part with text', { ...inline(png()), text: 'here' }],
    ['a data URI', { text: `data:image/png;base64,${data}` }],
    ['a data URI in Markdown', { text: `Look: ![fox](data:image/png;base64,${wrapped}) nice` }],
    ['a data URI in HTML', { text: `<img src="data:image/png;charset=utf-8;base64,${data}">` }],
    ['a data URI and a line after it', { text: `data:image/png;base64,${data}\nHere it is` }],
    ['a data URI as a link', { fileData: { fileUri: `data:image/png;base64,${data}` } }],
    ['base64 with line breaks', { inlineData: { mimeType: 'image/png', data: wrapped } }],
    ['base64 without padding', { inlineData: { mimeType: 'image/png', data: data.replace(/=+$/, '') } }],
    ['a part whose text is a number', { ...inline(png()), text: 5 }],
  ])('image finds an image in %s', async (_, part) => {
    const ended = await image(['fox'], parts(part))
    expect(ended).toMatchObject({ code: 0, out: 'fox.png\n', files: ['fox.png'] })
    expect(ended.read('fox.png')).toEqual(png())
  })

  test('image accepts URL-safe base64', async () => {
    const safe = { inlineData: { mimeType: 'image/png', data: bytes.toString('base64url') } }
    expect(safe.inlineData.data).toMatch(/[-_]/)
    expect((await image(['fox'], parts(safe))).read('fox.png')).toEqual(bytes)
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

  test('image finds a long image with escaped or plain slashes', async () => {
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

  test.each(['iVBORw0KGgo*', 'iVBO Rw0K', 'iVBORw0KG', 'iVB=Rw0K', 'iVBORw0KGg=', '+_+_', ''])(
    'image exits with 8 for a text that is not base64: "%s"',
    async (wrong) => {
      const ended = await image(['x'], parts({ inlineData: { mimeType: 'image/png', data: wrong } }))
      expect(ended).toMatchObject({ code: 8, out: '', files: [] })
      expect(ended.err).toContain('not valid base64')
    },
  )

  test.each([0, 50_000, 99_999])(
    'image saves the whole base64 text if the character at %i is wrong',
    async (place) => {
      const text = Buffer.concat([png(), Buffer.alloc(75_000, 0xa5)])
        .toString('base64')
        .slice(0, 100_000)
      const wrong = `${text.slice(0, place)}*${text.slice(place + 1)}`
      const TMPDIR = temporaryFolder()
      const world = parts({ inlineData: { mimeType: 'image/png', data: wrong } })
      const ended = await image(['x'], { ...world, env: { TMPDIR } })
      expect(ended).toMatchObject({ code: 8, saved: [expect.stringMatching(/\.txt$/)] })
      expect(readFileSync(join(TMPDIR, ended.saved[0] ?? ''), 'utf8')).toBe(wrong)
    },
  )

  test('image exits with 8 for a broken image, and saves the other images', async () => {
    const broken = { inlineData: { mimeType: 'image/png', data: '*' } }
    const ended = await image(['x'], parts(inline(png(1)), broken, inline(png(2))))
    expect(ended).toMatchObject({ code: 8, out: 'x.png\nx-2.png\n', files: ['x-2.png', 'x.png'] })
  })
})

describe('answers without an image', () => {
  test.each([
    ['a text', imageAnswer({ text: 'I would\nrather not \u001b[31m' }), 'STOP', 'I would rather not ^[[31m'],
    [
      'a finish reason',
      '{"candidates":[{"finishReason":"IMAGE_SAFETY","content":{"parts":[{"text":"No"}]}}]}',
      'no image: IMAGE_SAFETY',
      'the service says: No',
    ],
    ['a block reason', '{"promptFeedback":{"blockReason":"SAFETY"}}', 'no image: SAFETY', ''],
    ['no candidates', '{"candidates":[]}', 'no image', ''],
    ['an unknown form', '{"data":[]}', 'another shape', ''],
    ['a web page', '<html><title>Log in</title>', 'not JSON', 'Log in'],
    ['an empty body', '', 'empty', ''],
  ])(
    'image exits with 8 and saves the body if an answer has no image: %s',
    async (_, body, expectedText, more) => {
      const ended = await image(['x'], { exchange: answering(body) })
      expect(ended).toMatchObject({ code: 8, out: '', files: [] })
      expect(ended.err).toContain(expectedText)
      expect(ended.err).toContain(more)
      expect(ended.saved).toHaveLength(body === '' ? 0 : 1)
      for (const name of ended.saved) expect(ended.err).toContain(name)
    },
  )

  test('the type of an error in a 200 to image decides the exit code', async () => {
    const body = '{"error":{"status":"RESOURCE_EXHAUSTED","message":"slow down"}}'
    expect(await image(['x'], { exchange: answering(body) })).toMatchObject({ code: 6, out: '', saved: [] })
  })
})
