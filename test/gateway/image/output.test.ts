import { describe, expect, test } from 'vitest'
import { answerInOrder } from '../../harness/responses.ts'
import { answering, parseLines, rejected, temporaryFolder } from '../../harness/run.ts'
import { image, imageAnswer, inline, jpeg, parts, png } from './image.ts'

describe('stdout and stderr of image', () => {
  test('image prints paths on stdout, and texts on stderr with | before each line', async () => {
    const texts = [{ text: '::add-mask::x\n\u001b[2J' }, { text: 'hm', thought: true }]
    const ended = await image(['x'], parts(...texts, inline(png())))
    expect(ended).toMatchObject({ code: 0, out: 'x.png\n', err: '| ::add-mask::x\n| ^[[2J\n' })
    expect((await image(['x', '-q'], parts(...texts, inline(png())))).err).toBe('')
  })

  test('image prints the footer on a terminal, or with --usage', async () => {
    const withUsage = await image(['x', '--usage'])
    expect(withUsage.err).toMatch(/^— alpha-image · STOP · 4 tokens in · 1,290 out · \d+\.\d s\n$/)
    expect((await image(['x'], { tty: ['stderr'] })).err).toContain('tokens in')
    expect((await image(['x'])).err).toBe('')
  })

  test('image --raw prints the exact bytes and saves no image, and exits with 8 only if the JSON is incomplete', async () => {
    const body = ` ${imageAnswer(inline(png()))}\n`
    const exchange = answering([body.slice(0, 50), body.slice(50)])
    const ended = await image(['x', '--raw'], { exchange })
    expect(ended).toMatchObject({ code: 0, out: body, files: [], err: '' })
    const cut = await image(['x', '--raw'], { exchange: answering('{"candidates":[') })
    expect(cut).toMatchObject({ code: 8, out: '{"candidates":[' })
  })

  test.each([
    ['an error envelope', '{"type":"error","error":{"type":"overloaded_error","message":"Later"}}', 7],
    ['an error event', 'data: {"error":{"code":499,"message":"x"}}\n\n', 8],
  ])('image --raw fails if the body is %s', async (_, body, code) => {
    const out = body.replace(/^data: (.*\n)\n/, '$1')
    const ended = await image(['x', '--raw'], { exchange: answering(body) })
    expect(ended).toMatchObject({ code, out, files: [], saved: [] })
  })

  test.each(['-', '/dev/stdout'])('image -o %s writes only the bytes of one image', async (output) => {
    const ended = await image(['x', '-o', output], parts({ text: 'hi' }, inline(png())))
    expect(ended).toMatchObject({ code: 0, err: '| hi\n', files: [] })
    expect(Buffer.from(ended.outBytes)).toEqual(png())
  })

  test('image -o - saves several images in the temporary folder with their extensions', async () => {
    const ended = await image(['x', '-o', '-'], parts(inline(png(1)), inline(jpeg, 'image/jpeg')))
    expect(ended).toMatchObject({ code: 11, out: '' })
    expect(ended.saved).toHaveLength(2)
    expect(ended.err.split('\n')).toEqual([
      'parley: -o - can write only one image, and the answer has 2: use -o FILE or -o FOLDER/',
      expect.stringMatching(/^ {2}image 1; the received data is saved as .*\.png$/),
      expect.stringMatching(/^ {2}image 2; the received data is saved as .*\.jpg$/),
      '',
    ])
    for (const name of ended.saved) expect(ended.err).toContain(name)
    expect(ended.saved.map((name) => name.slice(-4)).sort()).toEqual(['.jpg', '.png'])
  })

  test('I16: image -o - exits with 2 on a terminal before it sends anything (V13)', async () => {
    const ended = await image(['x', '-o', '-'], { tty: ['stdout'] })
    expect(ended).toMatchObject({ code: 2, out: '', requests: [] })
  })
})

const kitty = { env: { TERM: 'xterm-kitty' }, tty: ['stdout' as const] }
const iterm = { env: { TERM_PROGRAM: 'iTerm.app' }, tty: ['stdout' as const] }

test('image shows a preview of each image on terminals that support images', async () => {
  expect((await image(['x'], kitty)).out).toMatch(/^x\.png\n\x1b_Ga=T,f=100,q=2,m=0;[\w+/=]+\x1b\\\n$/)
  const preview = `\x1b]1337;File=inline=1;size=${png().length}:${png().toString('base64')}\x07\n`
  expect((await image(['x'], iterm)).out).toBe(`x.png\n${preview}`)
  expect((await image(['x', '--preview'], { tty: ['stdout'] })).out).toContain('\x1b]1337;')
})

test.each([
  ['a pipe', [], { env: kitty.env }],
  ['a pipe with --preview', ['--preview'], { env: kitty.env }],
  ['--no-preview', ['--no-preview'], kitty],
  ['an unknown terminal', [], { tty: ['stdout' as const] }],
  ['a terminal multiplexer', [], { ...kitty, env: { TERM: 'xterm-kitty', TMUX: '/tmp/x' } }],
])('image prints no preview for %s', async (_, argv, world) => {
  expect((await image(['x', ...argv], world)).out).toBe('x.png\n')
})

describe('image that may be cut', () => {
  const stopped = imageAnswer(inline(png())).replace('"STOP"', '"MAX_TOKENS"')
  const damaged = imageAnswer(inline(png().subarray(0, -12)), inline(png(9)))
  const whole = imageAnswer(inline(png()))
  const limit = 'the answer was cut at the output limit (--max-output-tokens N sets it)'
  const noEnd = 'fox.png: the PNG has no end, so it may be cut off'

  test.each([
    ['an answer that reached the output limit', stopped, limit, ['fox.png']],
    ['an image without its end', damaged, noEnd, ['fox-2.png', 'fox.png']],
  ])('image saves %s, and exits with 8 only with --fail-on-cut', async (_, body, why, files) => {
    const exchange = answering(body)
    const out = files.toReversed().join('\n')
    const plain = await image(['fox'], { exchange })
    expect(plain).toMatchObject({ code: 0, out: `${out}\n`, err: `parley: ${why}\n`, files })
    const strict = await image(['fox', '--fail-on-cut', '--report', 'r.json'], { exchange })
    expect(strict).toMatchObject({ code: 8, out: `${out}\n`, err: `parley: ${why}\n` })
    const report = JSON.parse(strict.read('r.json').toString())
    expect(report).toMatchObject({ exit: 8, usage: { totalTokens: 1294 } })
    const set = await image(['fox', '-q'], { exchange, env: { PARLEY_FAIL_ON_CUT: '1' } })
    expect(set).toMatchObject({ code: 8, out: `${out}\n`, files })
  })

  test('image --fail-on-cut accepts a whole image, also without a stop reason', async () => {
    for (const body of [whole, whole.replace('"finishReason":"STOP"', '"index":0')]) {
      const ended = await image(['fox', '--fail-on-cut'], { exchange: answering(body) })
      expect(ended).toMatchObject({ code: 0, out: 'fox.png\n', err: '' })
    }
  })

  test('image --batch --fail-on-cut keeps cut images, and --resume requests them again', async () => {
    const cwd = temporaryFolder({ in: '"fox"\n"owl"\n"elk"\n' })
    const batch = ['--batch', 'in', '--results', 'r.ndjson', '--resume', '--concurrency', '1']
    expect((await image(batch, { cwd, exchange: answerInOrder(stopped, whole, whole) })).code).toBe(0)
    const strict = await image([...batch, '--fail-on-cut'], { cwd, exchange: answerInOrder(damaged) })
    expect(strict).toMatchObject({ code: 8, out: '', requests: [{}] })
    const message =
      '000001-fox-2.png: the PNG has no end, so it may be cut off; received: 000001-fox-2.png, 000001-fox-3.png'
    const last = { index: 1, ok: false, error: { message }, usage: { totalTokens: 1294 } }
    expect(parseLines(strict.read('r.ndjson').toString()).at(-1)).toMatchObject(last)
  })

  test('image --raw --fail-on-cut is a usage error', async () => {
    const ended = await image(['fox', '--raw', '--fail-on-cut'])
    expect(ended).toMatchObject(rejected(2, '--fail-on-cut and --raw exclude each other'))
  })
})
