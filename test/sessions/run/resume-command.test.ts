import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { realTimers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createIdleClock } from '../../harness/clock.ts'
import { answering, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'
import { createFailingStdout } from '../../harness/stdout.ts'
import { createAgentService, type Event } from './agent-service.ts'

const use: Event = { id: 't1', type: 'agent.tool_use', name: 'bash', input: {}, evaluated_permission: 'ask' }
const clock = createIdleClock()
const stream = answering('', { headers: { 'content-type': 'text/event-stream' } })

/** Runs a task whose session becomes unreadable after the task. */
async function stop(words: string[], { root = [] as string[], env = {} } = {}) {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), '{"rules":[]}')
  writeFileSync(join(cwd, 's.json'), '{}')
  let isAccepted = false
  const exchange: Exchange = (request) => {
    if (request.method === 'POST') isAccepted = true
    else if (isAccepted) return answering('{}', { status: 403 })(request)
    return (request.url.endsWith('/stream') ? stream : answering('{"data":[]}'))(request)
  }
  const argv = [...root, 'events', 'run', '--deadline', '1h', ...words]
  const ended = await run(argv, { cwd, exchange, env, timers: realTimers })
  return { ...ended, cwd, printed: words.includes('json') ? [] : readPrintedCommand(ended.err) }
}

/** Returns the words of the printed command as a shell parses them. */
function readPrintedCommand(err: string): string[] {
  const [, line] = /^ {2}parley (events .*)$/m.exec(err) ?? []
  if (line === undefined) throw new Error(`no command: ${err}`)
  const words = execFileSync('bash', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' })
  return words.split('\0').slice(0, -1)
}

describe('resume command of events run', () => {
  test('Q40: the resume command has every given flag, but not the sent events', async () => {
    const flags = [
      ...[
        '--workspace-id',
        'w 1',
        '--vendor',
        'acme',
        '--beta',
        'skills-2025-10-02',
        '--agents-version',
        '2024-01-01',
      ],
      ...['-H', 'X-Trace: a b', '--tool', "x=jq '.a' | cat", '--tool-timeout', '5', '--policy', 'p.json'],
      ...['--last', '-o', 'a.txt', '--schema', 's.json'],
      ...['--agents-url', 'https://other.test', '--retries', '1', '--no-validate', '--audit', 'a.ndjson'],
    ]
    const sent = [
      'do it',
      '--message',
      'and',
      '--interrupt',
      '--outcome',
      'o',
      '--rubric',
      'r',
      '--event',
      '{"type":"user.interrupt"}',
      '--file',
      'p.json',
      '--fail-on-empty',
    ]
    const { code, printed } = await stop([...sent, ...flags, '-s', 's1'], {
      root: ['--timeout', '7'],
    })
    expect({ code, printed }).toEqual({
      code: 8,
      printed: [
        ...['events', 'run', '-s', 's1', '--timeout', '7', '--deadline', '1h'],
        ...flags.map((word) => ({ '-H': '--header', '-o': '--output' })[word] ?? word),
      ],
    })
  })

  test('Q41: the resume command names the session from the environment, and values that start with a hyphen', async () => {
    const { printed } = await stop(['x', '--no-beta', '--tool=-a=b'], { env: { PARLEY_SESSION: '-s 1' } })
    expect(printed).toEqual([
      'events',
      'run',
      '--session=-s 1',
      '--deadline',
      '1h',
      '--no-beta',
      '--tool=-a=b',
    ])
  })

  test('a run whose stdout is on a full disk reports the accepted task and the command that lists its events', async () => {
    const { exchange } = createAgentService({ rounds: [], timers: clock })
    const argv = ['events', 'run', 'go', '-s', 's1', '--no-stdin', '--deadline', '1h']
    const ended = await run(argv, { exchange, timers: clock, stdout: createFailingStdout(0, 'ENOSPC') })
    expect(ended.code).toBe(11)
    expect(ended.err).toMatch(
      /^parley: stdout: no space left on the disk\n {2}the task was accepted; its events: parley events list -s s1\n {2}to resume:\n/,
    )
  })

  test('a rerun with --audit does not succeed later if the service refuses to show the session', async () => {
    const { err } = await stop(['x', '-s', 's1', '--errors', 'json', '--audit', 'a.ndjson'])
    expect(JSON.parse(err).error).toMatchObject({ exit: 8, sent: 'yes', retry: 'look-first' })
  })

  test('Q42: the resume command redacts credentials in headers, and parley says that a person must fill them in', async () => {
    const { printed, err } = await stop([
      'x',
      '-s',
      's1',
      '-H',
      'X-Api-Key: canary-123456',
      '-H',
      'X-Trace: Bearer canary-654321',
    ])
    expect(printed.slice(-4)).toEqual([
      '--header',
      'X-Api-Key: [redacted]',
      '--header',
      'X-Trace: [redacted]',
    ])
    expect(err).toContain('fill in the [redacted] words')
    expect(err).not.toContain('canary')
    expect((await stop(['x', '-s', 's1'])).err).not.toContain('fill in')
  })
})

test('Y159: events run prints the commands that answer and resume if tool uses wait, and reports them', async () => {
  const cwd = temporaryFolder()
  const { exchange } = createAgentService({ rounds: [[use]], timers: clock })
  const argv = ['events', 'run', 'x', '-s', 's1', '--last', '--report', 'r.json']
  const { code, err } = await run(argv, { cwd, timers: clock, stdinKind: 'none', exchange })
  expect(code).toBe(12)
  expect(err).toBe(`parley: s1 waits for an answer
  t1: bash {}
  answer with: parley events confirm -s s1 t1 --allow
  or with --deny
  to resume:
  parley events run -s s1 --no-stdin --last --report r.json --after e1
`)
  const { resume, message } = JSON.parse(readFileSync(join(cwd, 'r.json'), 'utf8'))
  expect(message).toBe(
    's1 waits for an answer: t1: bash {}; answer with: parley events confirm -s s1 t1 --allow; or with --deny',
  )
  expect(resume).toEqual([
    'events',
    'run',
    '-s',
    's1',
    '--no-stdin',
    '--last',
    '--report',
    'r.json',
    '--after',
    'e1',
  ])
})

const where = [
  '--workspace-id',
  'w1',
  '--vendor',
  'acme',
  '--header',
  'X-Trace: a',
  '--no-beta',
  '--allow-http',
]

describe('suggested commands', () => {
  const idle = {
    id: 'i',
    type: 'session.status_idle',
    stop_reason: { type: 'requires_action', event_ids: ['t1'] },
  }
  const list = answering(JSON.stringify({ data: [use, idle] }))
  const exchange: RunOptions = {
    exchange: (request) => (request.url.endsWith('/stream') ? stream : list)(request),
  }

  test('Q44: the confirm command of events follow reaches the same service', async () => {
    const { code, err } = await run(['events', 'follow', '-s', 's1', '--history', ...where], exchange)
    expect(code).toBe(12)
    const [, command] = /answer with: (parley .*) --allow/.exec(err) ?? []
    expect(command).toBe(
      `parley events confirm ${where.join(' ').replace('X-Trace: a', "'X-Trace: a'")} -s s1 t1`,
    )
  })

  test('Q45: events send prints on a terminal how to see the answer', async () => {
    const world = {
      exchange: answering('{"data":[{"id":"s1","type":"user.message"}]}'),
      tty: ['stdout', 'stderr'] as ('stdout' | 'stderr')[],
    }
    const { err } = await run(['events', 'send', '-s', 's1', 'hi', '--vendor', 'acme'], world)
    expect(err).toContain('to see the answer: parley events follow --vendor acme -s s1 --history\n')
    expect((await run(['events', 'send', '-s', 's1', 'hi'], { ...world, tty: [] })).err).toBe('')
    expect((await run(['events', 'send', '-s', 's1', 'hi', '-q'], world)).err).toBe('')
    expect((await run(['events', 'send', '-s', 's1', 'hi', '--ids'], world)).err).toBe('')
    expect((await run(['events', 'send', '-s', 's1', '--interrupt'], world)).err).toBe('')
  })
})

describe('Y230: repetition of an interrupted run', () => {
  /** Returns the "retry" in the message of a signal during the work and after the run, and the exit code. */
  async function interrupt(words: string[], rounds: Event[][]) {
    const [early] = await signal('at work', words, rounds)
    const [late, code] = await signal('at the end', words, rounds)
    return { code, retries: [early, late] }
  }

  async function signal(when: 'at work' | 'at the end', words: string[], rounds: Event[][]) {
    const { exchange } = createAgentService({ rounds, timers: clock })
    let clean: (exit: number) => string = () => ''
    let printed = ''
    const shown = new Writable({
      write(_chunk, _encoding, done) {
        if (when === 'at work') printed ||= clean(143)
        done()
      },
    })
    const { code } = await run(['events', 'run', '-s', 's1', '--no-stdin', '--errors', 'json', ...words], {
      exchange,
      timers: clock,
      stdout: { isTerminal: false, open: () => shown, writeSync: () => 0 },
      onSignal(act) {
        clean = act
      },
    })
    const { retry, safeToRetry } = JSON.parse(printed || clean(143)).error
    expect(safeToRetry).toBe(retry === 'later')
    return [retry, code]
  }
  const audit = ['--audit', 'a.ndjson']

  test.each([
    ['does not resume without an audit file', ['go'], [[use]], { code: 12, retries: ['never', 'never'] }],
    [
      'resumes with an audit file until the run has ended',
      ['go', ...audit],
      [[use]],
      { code: 12, retries: ['later', 'never'] },
    ],
    [
      'resumes until the audit file shows the task as done',
      ['go', ...audit],
      [],
      { code: 0, retries: ['later', 'never'] },
    ],
  ])('after a signal to events run, the same command %s', async (_, words, rounds, expected) => {
    expect(await interrupt(words, rounds)).toEqual(expected)
  })
})
