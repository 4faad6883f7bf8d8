import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createPatientClock } from '../harness/clock.ts'
import { answering, message, run, temporaryFolder } from '../harness/run.ts'
import { type AgentScript, createAgentService } from '../sessions/run/agent-service.ts'

type World = NonNullable<Parameters<typeof run>[1]>

/** A stdout that takes no bytes. */
const unread = () => asEnd(new Writable({ write() {} }))

const asEnd = (stream: Writable) => ({ isTerminal: false, open: () => stream, writeSync: () => 0 })

const long = 'x'.repeat(100_000)
const says = (text: string) => ({ type: 'agent.message', content: [{ type: 'text', text }] })
const page = JSON.stringify({ data: [{ id: 'e1', ...says(long) }] })
const chunk = JSON.stringify({ candidates: [{ content: { parts: [{ text: long }] }, finishReason: 'STOP' }] })
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const picture = JSON.stringify({
  candidates: [{ content: { parts: [{ inlineData: { mimeType: 'image/png', data: pixel } }] } }],
})

/** Runs parley until a deadline with a stdout that takes no bytes. */
async function runUnread(argv: string[], world: World) {
  const ended = await run([...argv, '--deadline', '60', '--errors', 'json'], {
    stdout: unread(),
    timers: createPatientClock(),
    stdin: '',
    ...world,
  })
  const lines = ended.err.trimEnd().split('\n')
  return { code: ended.code, ...JSON.parse(lines.at(-1) ?? '').error }
}

const words = 'stdout: the deadline passed before all of it was written'

describe('O11: a stdout that nothing reads ends the run at the deadline', () => {
  test.each<[string, string[], string]>([
    ['any body', ['api', 'gateway', '/v1/models'], long],
    ['the items of pages', ['api', 'agents', '/v1/sessions', '--paginate'], page],
    ['a list', ['events', 'list', '-s', 's1'], page],
    ['the ids of a list', ['events', 'list', '-s', 's1', '--ids'], page],
  ])('exits with 11: %s', async (_, argv, body) => {
    const failure = await runUnread(argv, { exchange: answering(body) })
    expect(failure).toMatchObject({ code: 11, kind: 'file', message: words, deadline: true })
  })

  test.each<[string, string[], string, type: string, kept: string]>([
    ['an answer', [], message(long), 'application/json', long],
    ['a short answer', [], message('hi'), 'application/json', 'hi'],
    ['an answer with --raw', ['--raw'], message(long), 'application/json', message(long)],
    ['a stream', ['--stream'], `data: ${chunk}\n\n`, 'text/event-stream', long],
  ])('exits with 11 and saves the answer: %s', async (_, flags, body, type, kept) => {
    const cwd = temporaryFolder()
    const exchange = answering(body, { headers: { 'content-type': type } })
    const failure = await runUnread(['chat', 'hi', ...flags], { cwd, exchange, env: { TMPDIR: cwd } })
    expect(failure).toMatchObject({ code: 11, kind: 'file', sent: 'yes', deadline: true })
    expect(failure.message).toBe(`${words}; the received data is saved as ${failure.kept}`)
    expect(readFileSync(failure.kept, 'utf8')).toBe(kept)
  })

  test('O15: exits with 11 and saves the answer if -o names a full pipe (needs FIFOs)', async () => {
    const cwd = temporaryFolder()
    spawnSync('mkfifo', ['pipe'], { cwd })
    const reader = openSync(join(cwd, 'pipe'), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const argv = ['chat', 'hi', '-o', 'pipe']
      const failure = await runUnread(argv, { cwd, exchange: answering(message(long)), env: { TMPDIR: cwd } })
      expect(failure).toMatchObject({ code: 11, kind: 'file', sent: 'yes', deadline: true })
      expect(failure.message).toBe(
        `pipe: the deadline passed before all of it was written; the received data is saved as ${failure.kept}`,
      )
      expect(readFileSync(failure.kept, 'utf8')).toBe(`${long}\n`)
    } finally {
      closeSync(reader)
    }
  })

  test('exits with 11 and saves the image', async () => {
    const argv = ['image', 'a fox', '-m', 'painter', '-o', '-']
    const failure = await runUnread(argv, { exchange: answering(picture) })
    expect(failure).toMatchObject({ code: 11, sent: 'yes', kept: expect.any(String) })
    expect(readFileSync(failure.kept).toString('base64')).toBe(pixel)
  })

  test('exits with 11 after sending events and reports that they were accepted', async () => {
    const receipt = JSON.stringify({ data: [{ id: 'e1', type: 'user.message' }] })
    const failure = await runUnread(['events', 'send', 'hi', '-s', 's1'], { exchange: answering(receipt) })
    expect(failure).toMatchObject({ code: 11, sent: 'yes', retry: 'never', deadline: true })
  })

  test('exits a batch with 15 and sends no further request', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'in'), '"p"\n'.repeat(100))
    const asked: string[] = []
    const exchange: World['exchange'] = async (request) => {
      asked.push(request.url)
      return answering(message(long))(request)
    }
    const failure = await runUnread(['chat', '--batch', 'in', '--concurrency', '2'], { cwd, exchange })
    expect(failure).toMatchObject({ code: 15, kind: 'stopped', sent: 'yes', deadline: true })
    expect(asked.length).toBeLessThan(20)
  })
})

describe('O12: a follower whose output nothing reads exits with 15 at the deadline', () => {
  const withSession = (script: Partial<AgentScript> = {}) => {
    const timers = createPatientClock()
    return { service: createAgentService({ rounds: [[says(long)]], timers, ...script }), timers }
  }
  const stopped = { code: 15, kind: 'stopped', message: words, sent: 'yes', deadline: true }

  test.each([[['--history']], [['--history', '--raw']], [['--history', '--ids']]])(
    'of follow %j',
    async (flags) => {
      const history = [
        { id: 't1', type: 'user.message', content: [{ type: 'text', text: 'do it' }] },
        says(long),
        { id: 'u1', type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'ask' },
        { type: 'session.status_idle', stop_reason: { type: 'requires_action', event_ids: ['u1'] } },
      ]
      const { service, timers } = withSession({ history })
      const failure = await runUnread(['events', 'follow', '-s', 's1', ...flags], {
        exchange: service.exchange,
        timers,
      })
      expect(failure).toMatchObject({ ...stopped, retry: 'later' })
    },
  )

  test('of send --follow', async () => {
    const { service, timers } = withSession()
    const failure = await runUnread(['events', 'send', 'hi', '-s', 's1', '--follow'], {
      exchange: service.exchange,
      timers,
    })
    expect(failure).toMatchObject({ ...stopped, retry: 'never' })
    expect(service.tasks).toBe(1)
  })

  test.each([[[]], [['--raw']], [['--last']]])(
    'of run %j, with the resume command and an unfinished task',
    async (flags) => {
      const { service, timers } = withSession()
      const cwd = temporaryFolder()
      const failure = await runUnread(
        ['events', 'run', 'hi', '-s', 's1', '--audit', 'a', '--report', 'r', ...flags],
        { exchange: service.exchange, timers, cwd },
      )
      expect(failure).toMatchObject({ ...stopped, resume: expect.arrayContaining(['run', '-s', 's1']) })
      expect(service.tasks).toBe(1)
      const audit = readFileSync(join(cwd, 'a'), 'utf8').trimEnd().split('\n')
      expect(audit.map((line) => JSON.parse(line).event)).toEqual(['sent', 'accepted'])
      expect(JSON.parse(readFileSync(join(cwd, 'r'), 'utf8'))).toMatchObject({ exit: 15, kind: 'stopped' })
    },
  )
})

test('O13: a slow reader that finishes before the deadline gets everything', async () => {
  let out = ''
  const timers = createPatientClock()
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

test('O14: an unread stderr does not delay the end after the deadline', async () => {
  const ended = await run(['chat', 'hi', '--deadline', '60'], {
    exchange: answering(message(long)),
    stdout: unread(),
    stderr: unread(),
    timers: createPatientClock(),
  })
  expect(ended.code).toBe(11)
})
