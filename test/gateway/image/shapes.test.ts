import { readFileSync, statSync } from 'node:fs'
import { expect, test } from 'vitest'
import { answering, ownerOnlyMode } from '../../harness/run.ts'
import { image, imageAnswer, inline, jpeg, parts, png, webp } from './image.ts'

const data = png().toString('base64')
const uri = `data:image/png;base64,${data}`
const json = JSON.stringify
const chunk = (parts: object[], reason?: string) => ({
  candidates: [{ content: { parts }, finishReason: reason }],
})
const event = (value: object) => `data: ${json(value)}\n\n`
const events = { headers: { 'content-type': 'text/event-stream' } }

const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data } }
const start = { type: 'content_block_start', index: 0, content_block: block }

const chunks = [chunk([{ text: 'Here' }]), chunk([inline(png())], 'STOP')]
const blocks = [
  ...[{ type: 'message_start', message: {} }, start],
  ...[{ type: 'message_delta', delta: { stop_reason: 'end_turn' } }, { type: 'message_stop' }],
]

test.each([
  ['I20', 'inline data that is a data URI', imageAnswer({ inlineData: { mimeType: 'x', data: uri } }), {}],
  ['I22', 'the field b64_json of a list', json({ created: 1, data: [{ b64_json: data, url: null }] }), {}],
  ['I26', 'an array of chunks', json(chunks), {}],
  ['I27', 'an event stream with native chunks', chunks.map((each) => event(each)).join(''), events],
  ['I27', 'an event stream in the message format', blocks.map((each) => event(each)).join(''), events],
])('%s: image finds an image in %s', async (_, __, body, head) => {
  const ended = await image(['fox', '-q'], { exchange: answering(body, head) })
  expect(ended).toMatchObject({ code: 0, out: 'fox.png\n', err: '', files: ['fox.png'], saved: [] })
  expect(ended.read('fox.png')).toEqual(png())
})

test('image finds a long image in base64 with escaped or plain slashes', async () => {
  const large = Buffer.concat([png(), Buffer.alloc(300_000, 0xff)])
  const plain = imageAnswer({ text: '"quoted\\' }, inline(large), inline(png(3)))
  for (const body of [plain, plain.replaceAll('/', '\\/')]) {
    const ended = await image(['x'], { exchange: answering([body.slice(0, 100_001), body.slice(100_001)]) })
    expect(ended).toMatchObject({ code: 0, out: 'x.png\nx-2.png\n', err: '| "quoted\\\n' })
    expect(ended.read('x.png').equals(large)).toBe(true)
    expect(ended.read('x-2.png')).toEqual(png(3))
  }
})

test.each(['iVBORw0KGgo*', ''])('image exits with 8 for data that is not base64: %s', async (wrong) => {
  const ended = await image(['x'], parts({ inlineData: { mimeType: 'image/png', data: wrong } }))
  expect(ended).toMatchObject({ code: 8, out: '', files: [] })
  expect(ended.err).toContain('not valid base64')
})

test('I28: image prints the links in an answer with a list of URLs', async () => {
  const [a, b] = ['https://files.test/a.png', 'https://files.test/b.png']
  const exchange = answering(json({ data: [{ url: a }, { url: b }] }))
  expect(await image(['x'], { exchange })).toMatchObject({ code: 0, out: `${a}\n${b}\n` })
})

const bodyOf = (ended: Awaited<ReturnType<typeof image>>) => {
  const [path = ''] = /\S+parley-[\w.-]+/.exec(ended.err) ?? []
  expect(statSync(path).mode & 0o777).toBe(ownerOnlyMode)
  return readFileSync(path, 'utf8')
}

test.each([
  ['I30: image saves a body of an unknown form', json({ output: { picture: data } }), {}],
  ['I31: image saves an event that is cut off', event(chunk([inline(png())])).slice(0, -9), events],
])('%s', async (_, body, options) => {
  const ended = await image(['x'], { exchange: answering(body, options) })
  expect(ended).toMatchObject({ code: 8, out: '', files: [] })
  expect(bodyOf(ended)).toBe(body)
})

test.each([
  ['image/png', png(), 'png'],
  ['image/jpeg', jpeg, 'jpg'],
  ['', webp, 'webp'],
])('image saves a body of type %s that is an image, with its extension', async (type, body, extension) => {
  const ended = await image(['x'], { exchange: answering(body, { headers: { 'content-type': type } }) })
  const saved = [expect.stringMatching(`\\.${extension}$`)]
  expect(ended).toMatchObject({ code: 8, out: '', files: [], saved })
  expect(ended.err).toMatch(/^parley: the answer.* is not JSON; the received data is saved as \S+\n$/)
})

test('image saves a body that is an image whole, even if it is longer than 1 MiB', async () => {
  const body = Buffer.concat([png(), Buffer.alloc(2 ** 20)])
  const { err } = await image(['x'], { exchange: answering([body, 'end']) })
  const [path = ''] = /\S+parley-[\w.-]+/.exec(err) ?? []
  expect(statSync(path).size).toBe(body.length + 3)
})

test('I32: image saves a body without an image, and --errors json has the path of the file, except with --raw', async () => {
  const exchange = answering('{"picture":1}')
  const { err, saved } = await image(['x', '--errors', 'json'], { exchange })
  const path = expect.stringContaining(saved[0] ?? 'no file')
  const error = { kind: 'response', exit: 8, sent: 'yes', message: path, kept: path }
  expect(JSON.parse(err).error).toMatchObject(error)
  const raw = await image(['x', '--raw'], { exchange })
  expect(raw).toMatchObject({ code: 0, out: '{"picture":1}', saved: [] })
})

test('I33: image prints the stop reason of an answer without an image, with its explanation', async () => {
  const messageOf = async (body: object) => (await image(['x'], { exchange: answering(json(body)) })).err
  const finish = { candidates: [{ finishReason: 'IMAGE_OTHER', finishMessage: 'Try again' }] }
  expect(await messageOf(finish)).toMatch(/no image: IMAGE_OTHER\n {2}the service says: Try again\n$/)
  const blocked = 'parley: the prompt was blocked: SAFETY\n'
  expect(await messageOf({ promptFeedback: { blockReason: 'SAFETY' } })).toContain(blocked)
})

test('I34: if base64 data has an invalid character, image saves the base64 text without decoding it', async () => {
  const long = Buffer.alloc(150_000, 1).toString('base64')
  const wrong = `${long.slice(0, 4)}*${long.slice(4)}`
  const damaged = { inlineData: { mimeType: 'image/png', data: wrong } }
  const ended = await image(['x'], parts(damaged, inline(png())))
  expect(ended).toMatchObject({ code: 8, out: 'x.png\n', files: ['x.png'] })
  expect(bodyOf(ended)).toBe(wrong)
})

const whole = event(chunk([inline(png())]))
test.each([
  ['is followed by an error event', whole + event({ error: { code: 499, message: 'gone' } }), 'gone', 0],
  ['is in a stream without an end', whole, 'ended early', 1],
  ['is in lines without an end', `${json(chunk([inline(png())]))}\n${json(chunk([]))}`, 'ended early', 1],
])('I35: image exits with 8 and saves an image that %s', async (_, body, expectedText, savedBodies) => {
  const ended = await image(['x'], { exchange: answering(body, events) })
  expect(ended).toMatchObject({ code: 8, out: 'x.png\n', files: ['x.png'] })
  expect(ended.err).toContain(expectedText)
  expect(ended.saved).toHaveLength(savedBodies)
})

test('I35: image saves an image next to an error in one body, and exits with the code of the error', async () => {
  const body = json({ error: { code: 429, message: 'slow down' }, ...chunk([inline(png())], 'STOP') })
  const ended = await image(['x', '--retries', '0'], { exchange: answering(body) })
  expect(ended).toMatchObject({ code: 6, out: 'x.png\n', files: ['x.png'], saved: [] })
  expect(ended.err).toContain('the service says: slow down')
})

test('I37: image prints a link with a line break on one line, in a pipe and on a terminal', async () => {
  const fileUri = 'https://files.test/a\n/etc/passwd\r\u001b[2J'
  for (const tty of [[], ['stdout' as const]]) {
    const ended = await image(['x'], { ...parts({ fileData: { fileUri } }), tty })
    expect(ended).toMatchObject({ code: 0, out: 'https://files.test/a%0A/etc/passwd%0D%1B[2J\n' })
  }
})
