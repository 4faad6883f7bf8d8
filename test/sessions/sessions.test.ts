import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { answering, run, temporaryFolder } from '../harness/run.ts'

const first = {
  id: 'sesn_1',
  status: 'idle',
  title: 'a\tb\u001b[2J',
  created_at: '2026-11-01T00:00:00Z',
  updated_at: '2026-11-02T00:00:00Z',
}
const second = { id: 'sesn_2', status: 'running', title: null, created_at: '2026-11-03T00:00:00Z' }

/** Creates an exchange that returns the bodies in order, and repeats the last one. */
function inTurn(...bodies: unknown[]) {
  let calls = 0
  return (...request: Parameters<ReturnType<typeof answering>>) =>
    answering(JSON.stringify(bodies[Math.min(calls++, bodies.length - 1)]))(...request)
}
const pages = () => inTurn({ data: [first], next_page: 'p 2' }, { data: [second], next_page: null })

test('sessions list prints id, status, title and time of the last change of all pages', async () => {
  const { code, out, requests } = await run(['sessions', 'list'], { exchange: pages() })
  expect({ code, out }).toEqual({
    code: 0,
    out: 'sesn_1\tidle\ta\\tb\u001b[2J\t2026-11-02T00:00:00Z\nsesn_2\trunning\t\t2026-11-03T00:00:00Z\n',
  })
  expect(requests.map(({ method, url }) => [method, url])).toEqual([
    ['GET', 'https://agents.test/v1/sessions'],
    ['GET', 'https://agents.test/v1/sessions?page=p%202'],
  ])
  expect(requests[0]?.headers).toMatchObject({ 'vendor-beta': 'managed-agents-2026-04-01' })
})

test('sessions list prints ids, raw lines, or on a terminal a table without control characters', async () => {
  expect((await run(['sessions', 'list', '--ids'], { exchange: pages() })).out).toBe('sesn_1\nsesn_2\n')
  const raw = await run(['sessions', 'list', '--raw'], { exchange: pages() })
  expect(raw.out).toBe(`${JSON.stringify(first)}\n${JSON.stringify(second)}\n`)
  const table = await run(['sessions', 'list'], { exchange: pages(), tty: ['stdout'] })
  expect(table.out).toMatch(/^ID +STATUS +CHANGED +TITLE\nsesn_1 +idle +2026-11-0\d \d\d:\d\d:\d\d +a/)
  expect(table.out).not.toContain('\u001b[2J')
})

test.each([
  ['a session without an id', { data: [{ status: 'idle' }] }, 'data[0] has no id'],
  ['pages that repeat', { data: [first], next_page: 'p' }, 'its pages repeat'],
  ['no data', {}, 'has no data'],
])('sessions list exits with 8 for %s', async (_, body, said) => {
  const { code, err } = await run(['sessions', 'list'], { exchange: inTurn(body) })
  expect(code).toBe(8)
  expect(err).toContain(said)
})

test('sessions list notes that there are none', async () => {
  const { code, out, err } = await run(['sessions', 'list'], { exchange: inTurn({ data: [] }) })
  expect({ code, out, err }).toEqual({ code: 0, out: '', err: 'parley: no sessions\n' })
})

test('sessions create sends the fields of its flags and prints the id', async () => {
  const argv = ['sessions', 'create', '--agent', 'agent_1', '--environment', 'env_1', '--title', 'T']
  const { code, out, requests } = await run(argv, { exchange: inTurn(first) })
  expect({ code, out }).toEqual({ code: 0, out: 'sesn_1\n' })
  expect(requests[0]).toMatchObject({
    method: 'POST',
    url: 'https://agents.test/v1/sessions',
    text: '{"agent":"agent_1","environment_id":"env_1","title":"T"}',
  })
})

test('sessions create keeps the body of -i as it is written, and flags set its fields', async () => {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'body.json'), '{ "agent": "a", "x": 1.10, "environment_id":"e" }')
  const argv = ['sessions', 'create', '-i', 'body.json', '--agent', 'b']
  const { requests } = await run(argv, { cwd, exchange: inTurn(first) })
  expect(requests[0]?.text).toBe('{ "agent": "b", "x": 1.10, "environment_id":"e" }')
})

test.each([
  ['a missing agent', ['--environment', 'e'], '{}', '--agent ID must be given'],
  ['a missing agent and environment', [], '{}', '--agent ID and --environment ID must be given'],
  ['a list as a body', ['-i', '-'], '[]', 'stdin: must be an object'],
  [
    'an event that breaks a rule',
    ['-i', '-'],
    '{"agent":"a","environment_id":"e","initial_events":[{"type":"user.message"}]}',
    'initial_events[0].content',
  ],
])('sessions create sends nothing for %s', async (_, argv, stdin, said) => {
  const ended = await run(['sessions', 'create', ...argv], { stdin })
  expect(ended).toMatchObject({ code: 2, requests: [] })
  expect(ended.err).toContain(said)
})

test('sessions create exits with 8 after one request if a 200 is not a session', async () => {
  const argv = ['sessions', 'create', '--agent', 'a', '--environment', 'e']
  const { code, out, requests } = await run(argv, { exchange: answering('<html>') })
  expect({ code, out, count: requests.length }).toEqual({ code: 8, out: '', count: 1 })
})

test('sessions show prints status and usage, and the tool uses that wait', async () => {
  const usage = { input_tokens: 1200, output_tokens: 30 }
  const events = [
    { id: 't1', type: 'agent.tool_use', name: 'bash', input: { command: 'ls' } },
    { id: 'i1', type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ['t1'] } },
  ]
  const exchange = () => inTurn({ ...first, title: null, usage }, { data: events, next_page: null })
  const { code, out, requests } = await run(['sessions', 'show', 'sesn_1'], { exchange: exchange() })
  expect(code).toBe(0)
  expect(out).toBe(
    [
      'id\tsesn_1',
      'status\tidle',
      'changed\t2026-11-02T00:00:00Z',
      'usage\t1,200 tokens in · 30 out',
      'waits for\tt1 bash {"command":"ls"}\n',
    ].join('\n'),
  )
  expect(requests.map(({ url }) => url)).toEqual([
    'https://agents.test/v1/sessions/sesn_1',
    'https://agents.test/v1/sessions/sesn_1/events?order=asc',
  ])
  const raw = await run(['sessions', 'show', 'sesn_1', '--raw'], { exchange: exchange() })
  expect(JSON.parse(raw.out)).toMatchObject({ id: 'sesn_1', usage })
})

test('a session that sessions create made is listed and shown by the emulator', async () => {
  const exchange = createEmulator({})
  const made = await run(['sessions', 'create', '--agent', 'a', '--environment', 'e'], { exchange })
  const id = made.out.trim()
  expect((await run(['sessions', 'list', '--ids'], { exchange })).out).toBe(`${id}\n`)
  expect((await run(['sessions', 'show', id], { exchange })).out).toContain(`id\t${id}\nstatus\tidle\n`)
})
