import { once } from 'node:events'
import { expect, test } from 'vitest'
import { realTimers } from '../../src/timers.ts'
import { documentedBetas } from '../../src/wire/sessions/betas.ts'
import { execute, type StartedEmulator, startEmulator } from '../harness/process.ts'
import { rejected, run } from '../harness/run.ts'

const serve = (...argv: string[]) => startEmulator(argv)

type Init = { path?: string; body?: string; headers?: object }
const call = ({ baseUrl, accessToken }: StartedEmulator, init: Init = {}) =>
  fetch(baseUrl + (init.path ?? '/alpha_cli/v1beta/models/alpha-2.5-pro:generateContent'), {
    method: 'POST',
    headers: { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json', ...init.headers },
    body: init.body ?? '{"contents":[{"role":"user","parts":[{"text":"Say hello"}]}]}',
  })

const chat = ({ env }: StartedEmulator, ...argv: string[]) =>
  run(['chat', 'Say hello', ...argv], { exchange: 'network', timers: realTimers, env })

test('serve ends with 11 if it cannot print its address', async () => {
  expect((await execute(['serve'], { before: 'exec >&-' })).code).toBe(11)
})

test('curl and parley get the same answer from serve, byte for byte except for its id', async () => {
  const served = await serve()
  const plain = await (await call(served)).text()
  const withoutId = (body: string) => body.replace(/"id":"msg_\w{20}"/, '')
  expect(withoutId((await chat(served, '--raw')).out)).toBe(withoutId(plain))
  const { content, model } = JSON.parse(plain)
  expect(model).toBe('alpha-2.5-pro')
  expect(content[0].text).toContain('“Say hello”')
  for (const way of ['query', 'path', 'body']) {
    expect((await chat(served, '--stream', '--stream-via', way)).out).toBe(`${content[0].text}\n`)
  }
  expect(served.log()).toMatch(/POST \/alpha_cli\/v1beta\/models\/alpha-2\.5-pro:generateContent 200$/m)
  expect(served.log()).not.toContain(served.accessToken)
})

test('serve --latency waits before each answer, and --host chooses the address', async () => {
  const served = await serve('--latency', '50ms', '--host', 'localhost')
  expect(new URL(served.baseUrl).hostname).toBe('localhost')
  const start = performance.now()
  await call(served)
  // A timer may fire a millisecond early.
  expect(performance.now() - start).toBeGreaterThanOrEqual(49)
})

test('W12: serve fails exactly as often as --fault specifies', async () => {
  const faults = ['429x1', 'chat:402x1', 'cutx1', 'htmlx1', 'resetx1']
  const served = await serve(...faults.flatMap((fault) => ['--fault', fault]))
  expect(await chat(served, '--retries', '0')).toMatchObject({ code: 6, out: '' })
  expect(await chat(served)).toMatchObject({ code: 5, out: '' })
  expect((await chat(served, '--stream')).code).toBe(8)
  expect(await chat(served)).toMatchObject({ code: 8, out: '' })
  expect(await chat(served)).toMatchObject({ code: 10, out: '' })
  expect((await chat(served)).code).toBe(0)
})

test.each(['429x0', 'x1'])('serve exits with 2 for the invalid --fault %s', async (fault) => {
  const ended = await run(['serve', '--fault', fault, '--port', '65536'])
  expect(ended).toMatchObject(rejected(2, `--fault ${fault}: must be [ENDPOINT:]KIND[xTIMES]`))
})

test('serve continues after the reader of its log has closed the pipe', async () => {
  const served = await serve()
  served.child.stderr?.destroy()
  for (let i = 0; i < 3; i++) expect((await call(served)).status).toBe(200)
})

const oneEvent = '{"events":[{"type":"user.message","content":[{"type":"text","text":"hi"}]}]}'

test.each([
  [['--strict'], [400, 404]],
  [[], [200, 200]],
])('serve with %j answers an undocumented beta and an unknown session with %j', async (flags, statuses) => {
  const served = await serve('--api-key', 'k', ...flags)
  const post = (id: string, beta: string) => {
    const headers = { 'x-api-key': 'k', 'vendor-beta': `${documentedBetas[0]}, ${beta}` }
    return call(served, { path: `/v1/sessions${id}`, body: id ? oneEvent : '{}', headers })
  }
  const made = (await (await post('', '')).json()) as { id: string }
  const answers = [await post(`/${made.id}/events`, 'nonsense'), await post('/sesn_other/events', '')]
  expect(answers.map(({ status }) => status)).toEqual(statuses)
  expect(await answers[0]?.text()).toContain(flags.length > 0 ? "undocumented beta 'nonsense'" : '')
})

test('serve logs that it created an unknown session, and answers 400 to a reply to an unknown tool use', async () => {
  const served = await serve('--api-key', 'k')
  const headers = { 'x-api-key': 'k' }
  const reply = { type: 'user.tool_confirmation', tool_use_id: 'toolu_typo', result: 'allow' }
  const init = { path: '/v1/sessions/sesn_typo/events', headers, body: JSON.stringify({ events: [reply] }) }
  const refused = await call(served, init)
  expect(refused.status).toBe(400)
  expect(await refused.text()).toContain('events[0].tool_use_id: toolu_typo is not a tool use of sesn_typo')
  expect((await call(served, { path: '/v1/sessions', headers, body: '{}' })).status).toBe(200)
  served.child.kill()
  await once(served.child, 'close')
  const lines = served.log().split('\n').slice(0, 3)
  expect(lines.map((line) => line.slice(line.indexOf(' ') + 1))).toEqual([
    'created the session sesn_typo, which did not exist; --strict refuses unknown sessions',
    'POST /v1/sessions/sesn_typo/events 400',
    'POST /v1/sessions 200',
  ])
})
