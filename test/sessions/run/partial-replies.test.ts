import { expect, test } from 'vitest'
import {
  bash,
  confirms,
  createSessionService,
  type Event,
  running,
  type ScriptEvents,
  says,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

const search: Event = {
  id: 't2',
  type: 'agent.tool_use',
  name: 'web_search',
  input: { query: 'parley' },
  evaluated_permission: 'ask',
}
const history = [bash('t1'), search, waitsFor('t1', 't2')]
const policy = { rules: [{ tool: 'web_search', decision: 'allow' }], default: { decision: 'ask' } }
const line = ['events', 'run', '--policy', 'search.json', '--no-stdin', '--raw']

function open(next: ScriptEvents) {
  const service = createSessionService({ history, posts: [{ type: confirms('t2').type, next }] })
  service.write('search.json', policy)
  return service
}

test.each([300, 4_000])(
  'events run prints work that starts %s ms after a reply to one of two tool uses',
  async (after) => {
    const worked = [says('found'), waitsFor('t1')]
    const { run, events, requests } = open([shown(running, { after }), ...worked])
    const { code, out, err } = await run(line)
    expect(code, err).toBe(12)
    const printed = events.slice(history.length)
    expect(out).toBe(printed.map((event) => `${JSON.stringify(event)}\n`).join(''))
    expect(printed.map(({ type }) => type)).toEqual([
      confirms('t2').type,
      ...[running, ...worked].map(({ type }) => type),
    ])
    expect(err).toContain('s1 waits for an answer\n  t1: bash')
    expect(requests.at(-1)?.at).toBeLessThan(after + 1_000)
  },
)

test('events send --follow prints the work that starts after a reply to one of two waiting tool uses', async () => {
  const { run } = open([shown(running, { after: 300 }), says('found'), waitsFor('t1')])
  const { code, out, err } = await run([
    'events',
    'send',
    '--event',
    JSON.stringify(confirms('t2')),
    '--follow',
  ])
  expect(code, err).toBe(12)
  expect(out).toContain('\nfound\n')
})

test('events run exits 5 s after a reply to one of two waiting tool uses if the session stays idle', async () => {
  const { run, requests } = open([])
  const { code, err } = await run(line)
  expect(code, err).toBe(12)
  expect(err).toContain('s1 waits for an answer\n  t1: bash')
  expect(requests.at(-1)?.at).toBeGreaterThan(4_500)
  expect(requests.at(-1)?.at).toBeLessThan(6_000)
})
