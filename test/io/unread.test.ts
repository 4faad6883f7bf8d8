import { spawnSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createIdleClock } from '../harness/clock.ts'
import { bash, says, userSays, waitsFor } from '../harness/events.ts'
import { answering, message, type RunOptions, readJson, run, temporaryFolder } from '../harness/run.ts'
import { openAgent } from '../harness/session-service.ts'
import { createFailingStdout, createStdout } from '../harness/stdout.ts'

const long = 'x'.repeat(100_000)
const page = JSON.stringify({ data: [{ id: 'e1', ...says(long) }] })
const chunk = JSON.stringify({ candidates: [{ content: { parts: [{ text: long }] }, finishReason: 'STOP' }] })

/** Runs parley until a deadline with a stdout that accepts no bytes. */
async function runUnread(argv: string[], world: RunOptions) {
  const unread = { stdout: createFailingStdout(0), timers: createIdleClock(), stdin: '' }
  const ended = await run([...argv, '--deadline', '60', '--errors', 'json'], { ...unread, ...world })
  const lines = ended.err.trimEnd().split('\n')
  return { code: ended.code, ...JSON.parse(lines.at(-1) ?? '').error }
}

const deadlineMessage = 'stdout: the deadline passed before all output was written'
const isSaved = 'the received data is saved as'

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
  ])('O11: parley exits with 11 at the deadline and saves %s', async (_, argv, body, type, saved) => {
    const cwd = temporaryFolder()
    const exchange = answering(body, { headers: { 'content-type': type } })
    const failure = await runUnread(argv, { cwd, exchange, env: { TMPDIR: cwd } })
    expect(failure).toMatchObject({ code: 11, kind: 'file', sent: 'yes', deadline: true })
    expect(failure.message).toBe(`${deadlineMessage}; ${isSaved} ${failure.kept}`)
    expect(readFileSync(failure.kept, 'utf8')).toBe(saved)
  })

  test('O15: chat exits with 11 and saves the answer if -o names a full pipe (needs FIFOs)', async () => {
    const cwd = temporaryFolder()
    spawnSync('mkfifo', ['pipe'], { cwd })
    const reader = openSync(join(cwd, 'pipe'), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const argv = ['chat', 'hi', '-o', 'pipe']
      const failure = await runUnread(argv, { cwd, exchange: answering(message(long)), env: { TMPDIR: cwd } })
      expect(failure).toMatchObject({ code: 11, kind: 'file', sent: 'yes', deadline: true })
      expect(failure.message).toBe(`${deadlineMessage.replace('stdout', 'pipe')}; ${isSaved} ${failure.kept}`)
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
  const message = expect.stringContaining(deadlineMessage)
  const stopped = { code: 15, kind: 'stopped', message, sent: 'yes', deadline: true }

  test('O12: events follow --history exits with 15 at the deadline if nothing reads stdout', async () => {
    const history = [userSays('do it'), says(long), bash('u1'), waitsFor('u1')]
    const service = openAgent({ rounds: [], history })
    const failure = await runUnread(['events', 'follow', '-s', 's1', '--history'], service)
    expect(failure).toMatchObject({ ...stopped, retry: 'later' })
  })

  test.each(['hi', 'hi --last'])('O12: events run %s ends at the deadline and resumes', async (words) => {
    const service = openAgent({ rounds: [[says(long)]] })
    const argv = `events run ${words} -s s1 --audit a.ndjson --report r`.split(' ')
    const failure = await runUnread(argv, service)
    expect(failure).toMatchObject({ ...stopped, resume: expect.arrayContaining(['run', '-s', 's1']) })
    expect([service.tasks, service.taskLines()]).toEqual([1, ['sent', 'accepted']])
    expect(readJson(service.cwd, 'r')).toMatchObject({ exit: 15, kind: 'stopped' })
  })
})

test('O13: a slow reader that finishes before the deadline gets the whole output', async () => {
  let out = ''
  const timers = createIdleClock()
  const stdout = createStdout((bytes, done) => {
    out += bytes
    void timers.wait(20_000).then(() => done())
  })
  const world = { exchange: answering(message(long)), stdout, timers }
  const ended = await run(['chat', 'hi', '--deadline', '60'], world)
  expect(ended.code).toBe(0)
  expect(out).toBe(`${long}\n`)
})
