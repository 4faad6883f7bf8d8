import { beforeEach, expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { type Exchange, readBody } from '../../src/wire/exchange.ts'
import { run } from '../harness/run.ts'

type Value = Record<string, unknown>
type Event = { id: string; type: string; usage: Value; model_usage: Value; budget?: Value } & Value

let exchange: Exchange
beforeEach(() => {
  exchange = createEmulator({})
})

const headers = { 'content-type': 'application/json', 'x-api-key': 'k', 'vendor-version': '2023-06-01' }

async function ask(method: string, path: string, body?: object) {
  const request = { method, url: `http://emulator${path}`, headers }
  const json = body && { body: Buffer.from(JSON.stringify(body)) }
  const { status, body: bytes } = await exchange({ ...request, ...json })
  return { status, value: JSON.parse(Buffer.from(await readBody(bytes)).toString()) }
}

const parley = (...argv: string[]) => run(argv, { exchange, env: { PARLEY_SESSION: 's1' } })
const task = (text: string, session = 's1') =>
  parley('events', 'send', '--follow', '-s', session, '--message', text)
const listed = async (session = 's1'): Promise<Event[]> =>
  (await ask('GET', `/v1/sessions/${session}/events?limit=100`)).value.data
const message = (text: string) => ({ type: 'user.message', content: [{ type: 'text', text }] })
const budget = (amount: string, currency = 'USD') => ({ type: 'limit', max_list_cost: { amount, currency } })
const make = async (body: object): Promise<string> => (await ask('POST', '/v1/sessions', body)).value.id

/** Waits until the session is idle. Returns the last event. */
async function waitForIdle(session: string): Promise<Event> {
  while ((await ask('GET', `/v1/sessions/${session}`)).value.status !== 'idle')
    await new Promise(setImmediate)
  return (await listed(session)).at(-1) as Event
}

test('the emulator reports growing usage and its cost before each idle event', async () => {
  await task('use a tool')
  await parley('events', 'confirm', '--pending', '--allow', '--follow')
  const events = await listed()
  const usages = events.filter(({ type }) => type === 'session.usage')
  expect(usages).toHaveLength(2)
  for (const usage of usages) {
    expect(events[events.indexOf(usage) + 1]).toMatchObject({ type: 'session.status_idle' })
    expect(usage.usage).toEqual({
      input_tokens: expect.any(Number),
      output_tokens: expect.any(Number),
      cache_read_input_tokens: expect.any(Number),
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      list_cost: { amount: expect.stringMatching(/^[1-9]\d*$/), currency: 'USD' },
    })
  }
  const [one, two] = usages.map(({ usage }) => usage as { output_tokens: number; list_cost: Value })
  expect(two?.output_tokens).toBeGreaterThan(one?.output_tokens ?? Infinity)
  expect(Number(two?.list_cost.amount)).toBeGreaterThan(Number(one?.list_cost.amount))
})

test('the emulator creates a session with initial events, status, usage and budget', async () => {
  const created = await ask('POST', '/v1/sessions', {
    agent: 'agent_1',
    title: 'Nightly',
    budget: budget('5000'),
    initial_events: [message('hello')],
    id: 'mine',
    usage: 5,
  })
  expect(created).toMatchObject({
    status: 200,
    value: {
      type: 'session',
      id: expect.stringMatching(/^sesn_\w+$/),
      status: 'running',
      agent: 'agent_1',
      title: 'Nightly',
      budget: budget('5000'),
      usage: { input_tokens: 0, list_cost: { amount: '0', currency: 'USD' } },
    },
  })
  expect(created.value).not.toHaveProperty('initial_events')
  const { id } = created.value
  expect(await waitForIdle(id)).toMatchObject({ stop_reason: { type: 'end_turn' } })
  const usage = (await listed(id)).findLast(({ type }) => type === 'session.usage')
  const read = await ask('GET', `/v1/sessions/${id}`)
  expect(read.value).toMatchObject({ id, status: 'idle', usage: usage?.usage, budget: budget('5000') })
  expect((await listed(id))[0]).toMatchObject(message('hello'))
})

test('the emulator lists sessions page by page, newest first', async () => {
  const ids = [await make({}), await make({}), await make({})]
  expect(new Set(ids).size).toBe(3)
  const { value } = await ask('GET', '/v1/sessions?limit=2')
  expect(value.data).toHaveLength(2)
  const next = await ask('GET', `/v1/sessions?limit=2&page=${value.next_page}`)
  expect(next.value.next_page).toBeNull()
  const found = [...value.data, ...next.value.data].map(({ id }) => id)
  expect(found.sort()).toEqual(ids.sort())
})

test.each<[string, object, string]>([
  [
    'a budget of half a cent',
    { budget: budget('0.5') },
    'budget.max_list_cost.amount: must be digits, in minor units',
  ],
  [
    'an initial event of an unknown type',
    { initial_events: [{ type: 'user.mesage' }] },
    "initial_events[0].type: unknown event type 'user.mesage'",
  ],
  [
    '51 initial events',
    { initial_events: Array(51).fill(message('x')) },
    'initial_events: must have at most 50',
  ],
])('the emulator creates no session with %s', async (_, body, said) => {
  const { status, value } = await ask('POST', '/v1/sessions', body)
  expect([status, value.error?.message]).toEqual([400, expect.stringContaining(said)])
  expect((await ask('GET', '/v1/sessions')).value.data).toEqual([])
})
