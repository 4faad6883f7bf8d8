import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createIdleClock } from '../harness/clock.ts'
import {
  answering,
  message,
  parseLines,
  type RunOptions,
  readJson,
  readText,
  run,
  temporaryFolder,
} from '../harness/run.ts'
import { type AgentScript, createAgentService } from '../harness/session-service.ts'

/** Creates a stdout that accepts no bytes. */
const unread = () => asEnd(new Writable({ write() {} }))

const asEnd = (stream: Writable) => ({ isTerminal: false, open: () => stream, writeSync: () => 0 })

const long = 'x'.repeat(100_000)
const says = (text: string) => ({ type: 'agent.message', content: [{ type: 'text', text }] })
const page = JSON.stringify({ data: [{ id: 'e1', ...says(long) }] })
const chunk = JSON.stringify({ candidates: [{ content: { parts: [{ text: long }] }, finishReason: 'STOP' }] })

/** Runs parley until a deadline with a stdout that accepts no bytes. */
async function runUnread(argv: string[], world: RunOptions) {
  const ended = await run([...argv, '--deadline', '60', '--errors', 'json'], {
    stdout: unread(),
    timers: createIdleClock(),
    stdin: '',
    ...world,
  })
  const lines = ended.err.trimEnd().split('\n')
  return { code: ended.code, ...JSON.parse(lines.at(-1) ?? '').error }
}

const deadlineMessage = 'stdout: the deadline passed before all output was written'

describe('O11: deadline if nothing reads stdout', () => {
  test.each<[string, string[], string]>([
    ['the items of api --paginate', ['api', 'agents', '/v1/sessions', '--paginate'], page],
    ['an event list', ['events', 'list', '-s', 's1'], page],
  ])('O11: parley exits with 11 at the deadline if nothing reads %s', async (_, argv, body) => {
    const failure = await runUnread(argv, { exchange: answering(body) })
    expect(failure).toMatchObject({ code: 11, kind: 'file', message: deadlineMessage, deadline: true })
  })

  test.each<[string, string[], string, type: string, saved: string]>([
    ['an answer', ['chat', 'hi'], message(long), 'application/json', long],
    ['a streamed answer', ['chat', 'hi', '--stream'], `data: ${chunk}\n\n`, 'text/event-stream', long],
    ['the body of api', ['api', 'gateway', '/v1/models'], long, 'text/plain', long],
  ])(
    'O11: if nothing reads stdout, parley exits with 11 at the deadline and saves %s',
    async (_, argv, body, type, saved) => {
      const cwd = temporaryFolder()
      const exchange = answering(body, { headers: { 'content-type': type } })
      const failure = await runUnread(argv, { cwd, exchange, env: { TMPDIR: cwd } })
      expect(failure).toMatchObject({ code: 11, kind: 'file', sent: 'yes', deadline: true })
      expect(failure.message).toBe(`${deadlineMessage}; the received data is saved as ${failure.kept}`)
      expect(readFileSync(failure.kept, 'utf8')).toBe(saved)
    },
  )

  test('O15: chat exits with 11 and saves the answer if -o names a full pipe (needs FIFOs)', async () => {
    const cwd = temporaryFolder()
    spawnSync('mkfifo', ['pipe'], { cwd })
    const reader = openSync(join(cwd, 'pipe'), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const argv = ['chat', 'hi', '-o', 'pipe']
      const failure = await runUnread(argv, { cwd, exchange: answering(message(long)), env: { TMPDIR: cwd } })
      expect(failure).toMatchObject({ code: 11, kind: 'file', sent: 'yes', deadline: true })
      expect(failure.message).toBe(
        `pipe: the deadline passed before all output was written; the received data is saved as ${failure.kept}`,
      )
      expect(readFileSync(failure.kept, 'utf8').trimEnd()).toBe(long)
    } finally {
      closeSync(reader)
    }
  })

  test('O11: if nothing reads stdout, events send exits with 11 at the deadline and reports the accepted events', async () => {
    const receipt = JSON.stringify({ data: [{ id: 'e1', type: 'user.message' }] })
    const failure = await runUnread(['events', 'send', 'hi', '-s', 's1'], { exchange: answering(receipt) })
    expect(failure).toMatchObject({ code: 11, sent: 'yes', retry: 'never', deadline: true })
  })
})

describe('O12: deadline of a follower if nothing reads stdout', () => {
  const withSession = (script: Partial<AgentScript> = {}) => {
    const timers = createIdleClock()
    return { service: createAgentService({ rounds: [[says(long)]], timers, ...script }), timers }
  }
  const stopped = {
    code: 15,
    kind: 'stopped',
    message: expect.stringContaining(deadlineMessage),
    sent: 'yes',
    deadline: true,
  }

  test('O12: events follow --history exits with 15 at the deadline if nothing reads stdout', async () => {
    const history = [
      { id: 't1', type: 'user.message', content: [{ type: 'text', text: 'do it' }] },
      says(long),
      { id: 'u1', type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'ask' },
      { type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ['u1'] } },
    ]
    const { service, timers } = withSession({ history })
    const failure = await runUnread(['events', 'follow', '-s', 's1', '--history'], {
      exchange: service.exchange,
      timers,
    })
    expect(failure).toMatchObject({ ...stopped, retry: 'later' })
  })

  test.each(['hi', 'hi --last'])(
    'O12: if nothing reads stdout, events run %s exits with 15 at the deadline and reports a resume command',
    async (words) => {
      const { service, timers } = withSession()
      const cwd = temporaryFolder()
      const argv = `events run ${words} -s s1 --audit a --report r`.split(' ')
      const failure = await runUnread(argv, { exchange: service.exchange, timers, cwd })
      expect(failure).toMatchObject({ ...stopped, resume: expect.arrayContaining(['run', '-s', 's1']) })
      expect(service.tasks).toBe(1)
      expect(parseLines(readText(cwd, 'a')).map(({ event }) => event)).toEqual(['sent', 'accepted'])
      expect(readJson(cwd, 'r')).toMatchObject({ exit: 15, kind: 'stopped' })
    },
  )
})

test('O13: a slow reader that finishes before the deadline gets the whole output', async () => {
  let out = ''
  const timers = createIdleClock()
  const slow = new Writable({
    write(bytes: Buffer, _, done) {
      out += bytes
      void timers.wait(20_000).then(() => done())
    },
  })
  const ended = await run(['chat', 'hi', '--deadline', '60'], {
    exchange: answering(message(long)),
    stdout: asEnd(slow),
    timers,
  })
  expect(ended.code).toBe(0)
  expect(out).toBe(`${long}\n`)
})
