import { beforeEach, expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { type Exchange, readBody } from '../../src/wire/exchange.ts'
import { run } from '../harness/run.ts'

const events = '/v1/sessions/sesn_1/events'
const chat = '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'
const prompt = '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}'

let exchange: Exchange
beforeEach(() => {
  exchange = createEmulator({})
})

/** Sends a request with any body. */
async function ask(method: string, path: string, body?: string | object, authorization = 'Bearer t') {
  const headers = { 'content-type': 'application/json', 'x-api-key': 'k', authorization }
  const text = typeof body === 'object' ? JSON.stringify(body) : body
  const bytes = text === undefined ? {} : { body: Buffer.from(text) }
  const answer = await exchange({ method, url: `http://emulator${path}`, headers, ...bytes })
  const value = JSON.parse(Buffer.from(await readBody(answer.body)).toString())
  return { status: answer.status, id: answer.headers['request-id'], value }
}

test.each([
  ['GET', '/nowhere', 404],
  ['DELETE', events, 404],
  ['POST', chat, 400],
])('W24: the emulator sends the request id of an error twice: %s %s', async (method, path, code) => {
  const { status, id, value } = await ask(method, path, '[]')
  expect([status, value.type]).toEqual([code, 'error'])
  expect(id).toMatch(/^req_\w+$/)
  expect(value.request_id).toBe(id)
})

test.each([
  ['Bearer t', 200],
  ['bearer t', 200],
  ['Bearer T', 401],
])('W28: the emulator ignores the case of the authentication scheme: %s', async (authorization, status) => {
  exchange = createEmulator({ credentials: { accessToken: 't' } })
  expect((await ask('POST', chat, prompt, authorization)).status).toBe(status)
})

test.each([
  ['POST', '/alpha_cli/v1beta/models/alpha-2.5-pro%3AgenerateContent', 200],
  ['GET', '/v1/sessions/sesn%5F1/events', 200],
  ['GET', '/v1/sessions%2Fsesn_1/events', 404],
])('W29: the emulator decodes percent-encoded paths: %s %s has the status %i', async (method, path, code) => {
  expect((await ask(method, path, method === 'POST' ? prompt : undefined)).status).toBe(code)
})

test('the emulator refuses an event named __proto__', async () => {
  expect((await ask('POST', events, '{"events":[{"type":"__proto__"}]}')).status).toBe(400)
})

test.each(['query', 'body'])('serve --fault cut cuts a stream via %s within its text', async (via) => {
  const argv = ['chat', 'Say hello', '--stream', '--stream-via', via]
  const whole = await run(argv, { exchange: createEmulator({}) })
  const exchange = createEmulator({ faults: ['chat:cutx1'] })
  const ended = await run(argv, { exchange })
  expect(ended).toMatchObject({ code: 8, out: expect.stringMatching(/^Hello from/) })
  expect(ended.out.length).toBeLessThan(whole.out.length)
  expect(whole.out.startsWith(ended.out.trimEnd())).toBe(true)
})

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

const message = (text: string) => ({ type: 'user.message', content: [{ type: 'text', text }] })
const budget = (amount: string, currency = 'USD') => ({ type: 'limit', max_list_cost: { amount, currency } })

test('the emulator reports growing usage and its cost before each idle event', async () => {
  const parley = (...argv: string[]) => run(['events', ...argv, '-s', 'sesn_1'], { exchange })
  await parley('send', '--follow', '--message', 'use a tool')
  await parley('confirm', '--pending', '--allow', '--follow')
  type Usage = { output_tokens: number; list_cost: { amount: string } }
  const data: { type: string; usage: Usage }[] = (await ask('GET', `${events}?limit=100`)).value.data
  const usages = data.filter(({ type }) => type === 'session.usage')
  for (const usage of usages) expect(data[data.indexOf(usage) + 1]?.type).toBe('session.status_idle')
  const [one, two] = usages.map(({ usage }) => usage)
  expect(two).toEqual({
    input_tokens: expect.any(Number),
    output_tokens: expect.any(Number),
    cache_read_input_tokens: expect.any(Number),
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    list_cost: { amount: expect.stringMatching(/^[1-9]\d*$/), currency: 'USD' },
  })
  expect(two?.output_tokens).toBeGreaterThan(one?.output_tokens ?? Infinity)
  expect(Number(two?.list_cost.amount)).toBeGreaterThan(Number(one?.list_cost.amount))
})

test('the emulator creates a session with initial events, status, usage and budget', async () => {
  const fields = { agent: 'agent_1', title: 'Nightly', budget: budget('5000') }
  const given = { ...fields, initial_events: [message('hello')], id: 'mine', usage: 5 }
  const { status, value } = await ask('POST', '/v1/sessions', given)
  expect(status).toBe(200)
  expect(value).toMatchObject({
    ...fields,
    type: 'session',
    id: expect.stringMatching(/^sesn_\w+$/),
    status: 'running',
    usage: { input_tokens: 0, list_cost: { amount: '0', currency: 'USD' } },
  })
  expect(value).not.toHaveProperty('initial_events')
  const read = async (path = '') => (await ask('GET', `/v1/sessions/${value.id}${path}`)).value
  while ((await read()).status !== 'idle') await new Promise(setImmediate)
  const { data } = await read('/events')
  expect(data[0]).toMatchObject(message('hello'))
  expect(data.at(-1)).toMatchObject({ stop_reason: { type: 'end_turn' } })
  const { usage } = data.findLast(({ type }: { type: string }) => type === 'session.usage')
  expect(await read()).toMatchObject({ ...fields, id: value.id, usage })
})

test('the emulator lists sessions page by page', async () => {
  const ids = []
  for (let i = 0; i < 3; i++) ids.push((await ask('POST', '/v1/sessions', {})).value.id)
  const { data, next_page } = (await ask('GET', '/v1/sessions?limit=2')).value
  const next = (await ask('GET', `/v1/sessions?limit=2&page=${next_page}`)).value
  expect([data.length, next.next_page]).toEqual([2, null])
  expect([...data, ...next.data].map(({ id }) => id).sort()).toEqual(ids.sort())
})

test.each<[string, object, string]>([
  [
    'a budget of half a cent',
    { budget: budget('0.5') },
    'budget.max_list_cost.amount: must be digits, in minor',
  ],
  ['an event of an unknown type', { initial_events: [{ type: 'x' }] }, "[0].type: unknown event type 'x'"],
  [
    '51 initial events',
    { initial_events: Array(51).fill(message('x')) },
    'initial_events: must have at most',
  ],
])('the emulator creates no session with %s', async (_, body, said) => {
  const { status, value } = await ask('POST', '/v1/sessions', body)
  expect([status, value.error?.message]).toEqual([400, expect.stringContaining(said)])
  expect((await ask('GET', '/v1/sessions')).value.data).toEqual([])
})
