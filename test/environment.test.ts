import { expect, onTestFinished, test } from 'vitest'
import type { Exchange } from '../src/wire/exchange.ts'
import { answering, message, run } from './harness/run.ts'

/** Changes the time zone of this process until the test ends. */
function setZone(zone: string): void {
  process.env.TZ = zone
  onTestFinished(() => {
    process.env.TZ = 'UTC'
  })
}

test('events follow shows since when a session is idle, in the time zone of TZ', async () => {
  setZone('Pacific/Chatham')
  const idle = { id: 'i', type: 'session.status_idle', processed_at: '2026-01-01T16:44:56Z' }
  const list = answering(JSON.stringify({ data: [idle] }))
  const stream = answering(': open\n\n', { headers: { 'content-type': 'text/event-stream' } })
  const exchange: Exchange = (request) => (request.url.endsWith('/stream') ? stream : list)(request)
  const { err } = await run(['events', 'follow', '-s', 's1'], { exchange, tty: ['stdout', 'stderr'] })
  expect(err).toContain('is idle since 2026-01-02 06:29:56 ')
})

test('events list treats a time without a zone as UTC when it checks the order of events', async () => {
  setZone('America/New_York')
  const times = ['2026-01-01T10:00:03Z', '2026-01-01T10:00:02', '2026-01-01T10:00:01Z']
  const data = times.map((processed_at, index) => ({ id: `e${index}`, type: 'x', processed_at }))
  const exchange = answering(JSON.stringify({ data, next_page: null }))
  const env = { PARLEY_SESSION: 'sesn_1' }
  const ended = await run(['events', 'list', '--ids', '--limit', '3'], { exchange, env })
  expect(ended).toMatchObject({ code: 0, out: 'e2\ne1\ne0\n', err: '' })
  expect(ended.requests).toHaveLength(1)
})

test.each([
  ['in a pipe', 'NO_COLOR= FORCE_COLOR=1', 'colour'],
  ['in a pipe', 'FORCE_COLOR=3', 'colour'],
  ['in a pipe', 'CLICOLOR=1', 'no colour'],
  ['in a pipe', 'NO_COLOR=1 FORCE_COLOR=1', 'no colour'],
  ['on a terminal', 'no variable for colour', 'colour'],
  ['on a terminal', 'FORCE_COLOR=0', 'no colour'],
  ['on a terminal', 'NO_COLOR=1', 'no colour'],
  ['on a terminal', 'CLICOLOR=0', 'no colour'],
  ['on a terminal', 'TERM=dumb', 'no colour'],
])('V12: messages on stderr %s, with the environment %s, have %s', async (where, variables, expected) => {
  const assignments = variables.split(' ').filter((each) => each.includes('='))
  const env = Object.fromEntries(assignments.map((each) => each.split('=')))
  for (const line of ['chat hi --usage', 'chat --no-such-flag', 'chat hi -m ..']) {
    const tty: 'stderr'[] = where === 'on a terminal' ? ['stderr'] : []
    const { err } = await run(line.split(' '), { exchange: answering(message('ok')), env, tty, stdin: '' })
    expect(err).not.toBe('')
    expect(/\x1b\[\d+m/.test(err), `${line}: ${err}`).toBe(expected === 'colour')
  }
})
