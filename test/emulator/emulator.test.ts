import { expect, test } from 'vitest'
import { createEmulator, type EmulatorOptions } from '../../src/emulator/emulator.ts'
import { type HttpRequest, readBody } from '../../src/wire/exchange.ts'
import { run } from '../harness/run.ts'

const events = '/v1/sessions/sesn_1/events'
const chat = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const json = { 'content-type': 'application/json', 'x-api-key': 'k', authorization: 'Bearer t' }
const prompt = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

/** Sends a request to a new emulator in this process. */
async function ask(
  options: EmulatorOptions,
  method: string,
  path: string,
  body?: string,
  headers: Record<string, string> = {},
) {
  const request: HttpRequest = { method, url: `http://emulator${path}`, headers: { ...json, ...headers } }
  const exchange = createEmulator(options)
  const response = await exchange(body === undefined ? request : { ...request, body: Buffer.from(body) })
  const text = Buffer.from(await readBody(response.body)).toString()
  return { status: response.status, headers: response.headers, text }
}

test.each([
  ['GET', '/nowhere', 404],
  ['DELETE', events, 404],
  ['POST', chat, 400],
])(
  'W24: the emulator sends the request id of an error in body and header: %s %s',
  async (method, path, code) => {
    const { status, headers, text } = await ask({}, method, path, '[]')
    expect(status).toBe(code)
    expect(JSON.parse(text)).toMatchObject({ type: 'error', request_id: headers['request-id'] })
    expect(headers['request-id']).toMatch(/^req_\w+$/)
  },
)

test.each(['Bearer', 'bearer'])(
  'W28: the emulator ignores the case of the authentication scheme: %s',
  async (scheme) => {
    const options = { credentials: { accessToken: 't' } }
    for (const [token, status] of [
      ['t', 200],
      ['T', 401],
    ] as const) {
      const authorization = `${scheme} ${token}`
      expect((await ask(options, 'POST', chat, prompt, { authorization })).status).toBe(status)
    }
  },
)

test.each([
  ['POST', '/alpha_cli/v1beta/models/alpha-2.5-pro%3AgenerateContent', 200],
  ['GET', '/v1/sessions/sesn%5F1/events', 200],
  ['GET', '/v1/sessions%2Fsesn_1/events', 404],
])('W29: the emulator decodes percent-encoded paths: %s %s has the status %i', async (method, path, code) => {
  expect((await ask({}, method, path, method === 'POST' ? prompt : undefined)).status).toBe(code)
})

const times = (text: string, count = 130_000) => Array(count).fill(text).join(',')
test.each([
  ['130,000 invalid events', events, `{"events":[${times('{"type":"user.mesage"}')}]}`],
  ['130,000 wrong turns', chat, `{"contents":[${times('5')}]}`],
  [
    'an event with 20,000 levels',
    events,
    `{"events":[{"type":"user.interrupt","a":${'['.repeat(20_000)}${']'.repeat(20_000)}}]}`,
  ],
  ['an event named __proto__', events, '{"events":[{"type":"__proto__"}]}'],
])('W30: the emulator refuses %s with a message of less than 10,000 characters', async (_, path, body) => {
  const { status, text } = await ask({}, 'POST', path, body)
  expect(status).toBe(400)
  expect(text.length).toBeLessThan(10_000)
})

test.each([['query'], ['body']])(
  'serve --fault cut cuts a stream within its text, also with --stream-via %s',
  async (via) => {
    const argv = ['chat', 'Say hello', '--stream', '--stream-via', via]
    const whole = await run(argv, { exchange: createEmulator({}) })
    const exchange = createEmulator({ faults: ['chat:cutx1'] })
    const ended = await run(argv, { exchange })
    expect(ended).toMatchObject({ code: 8, out: expect.stringMatching(/^Hello from/) })
    expect(ended.out.length).toBeLessThan(whole.out.length)
    expect(whole.out.startsWith(ended.out.trimEnd())).toBe(true)
  },
)

test('serve --fault rate:4 accepts four requests at once and then four per second, and answers 429 to all others', async () => {
  const argv = ['chat', 'Say hello', '--retries', '0']
  let now = 0
  const exchange = createEmulator({ faults: ['rate:4'] }, () => now)
  const sendChats = async (count: number) => {
    const codes: number[] = []
    for (let i = 0; i < count; i++) codes.push((await run(argv, { exchange })).code)
    return codes
  }
  expect(await sendChats(6)).toEqual([0, 0, 0, 0, 6, 6])
  const failed = await run([...argv, '--errors', 'json'], { exchange })
  expect(JSON.parse(failed.err).error).toMatchObject({ kind: 'rate-limited', status: 429, retryAfter: 1 })
  now += 500
  expect(await sendChats(3)).toEqual([0, 0, 6])
  now += 60_000
  expect(await sendChats(5)).toEqual([0, 0, 0, 0, 6])
})
