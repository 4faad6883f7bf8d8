import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CliError } from '../../../src/errors.ts'
import type { Exchange, HttpResponse } from '../../../src/wire/exchange.ts'
import { createIdleClock } from '../../harness/clock.ts'
import { answering, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'
import { bash, custom, endTurn, says, userSays } from '../../harness/session-service.ts'
import {
  type AgentScript,
  type AgentService,
  createAgentService,
  type Event,
  getLockPath,
} from './agent-service.ts'

const notice =
  'the audit file shows that an earlier run sent this task: the run continues the session and does not send the task again'

/** Runs the same command repeatedly, with one clock, on a service whose responses a test may cut. */
function open(script: AgentScript, words = ['go']) {
  const timers = createIdleClock()
  const service = createAgentService({ ...script, timers })
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'a.ndjson']
  const tool = ['--tool', 'count=echo $PARLEY_TOOL_USE_ID >> runs']
  const again = (more: RunOptions = {}, line = words) =>
    run([...argv, ...tool, ...line], {
      cwd,
      timers,
      stdinKind: 'none',
      exchange: service.exchange,
      ...more,
    })
  const readAudit = (): Record<string, unknown>[] =>
    existsSync(join(cwd, 'a.ndjson'))
      ? readFileSync(join(cwd, 'a.ndjson'), 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : []
  return { service, cwd, again, readAudit, timers }
}

const repetitionNote =
  "parley: the session's last user.message is the same task: parley sends the task once more\n"

test("events run without --audit warns before it sends the session's last task again, also with -q", async () => {
  const timers = createIdleClock()
  const service = createAgentService({
    rounds: [[says('one')], [says('two')], [says('three')]],
    timers,
  })
  const cwd = temporaryFolder()
  const go = (words: string[], exchange = service.exchange) =>
    run(['events', 'run', '-s', 's1', '-q', ...words], { cwd, timers, stdinKind: 'none', exchange })
  expect((await go(['go'])).err).toBe('')
  expect((await go(['go'])).err).toBe(repetitionNote)
  const refusing: Exchange = (request, onSent) =>
    request.method === 'POST' ? answering('{}', { status: 400 })(request) : service.exchange(request, onSent)
  expect((await go(['go'], refusing)).err).toContain(repetitionNote)
  expect((await go(['go on'])).err).toBe('')
  expect((await go(['go'])).err).toBe('')
  expect(service.tasks).toBe(4)
})

test.each([
  [
    'run',
    [],
    400,
    bash('t1'),
    's1 waits for an answer\n  answer with: parley events confirm -s s1 t1 --allow\n  or with --deny',
  ],
  [
    'run',
    [],
    409,
    custom('c1'),
    's1 waits for an answer\n  to send a result: parley events send -s s1 --custom-tool-result c1=TEXT',
  ],
  [
    'send',
    ['--follow'],
    409,
    bash('t1'),
    's1 waits for an answer\n  answer with: parley events confirm -s s1 t1 --allow',
  ],
  ['send', [], 400, bash('t1'), 'if tool uses wait for an answer: parley events confirm -s s1 --pending'],
  ['send', [], 409, bash('t1'), 'if tool uses wait for an answer: parley events confirm -s s1 --pending'],
])(
  'events %s %j names the command that answers waiting tool uses if the service refuses a task with %i',
  async (verb, flags, status, use, hint) => {
    const timers = createIdleClock()
    const { exchange } = createAgentService({ rounds: [[use]], timers })
    const world = { cwd: temporaryFolder(), timers, stdinKind: 'none' as const }
    expect((await run(['events', 'run', '-s', 's1', 'go'], { ...world, exchange })).code).toBe(12)
    const refusing: Exchange = (request, onSent) =>
      request.method === 'POST' ? answering('{}', { status })(request) : exchange(request, onSent)
    const refuse = (...words: string[]) =>
      run(['events', verb, '-s', 's1', ...flags, ...words], { ...world, exchange: refusing })
    const { code, err } = await refuse('on')
    expect(code).toBe(4)
    expect(err).toContain(`\n  ${hint}\n`)
    expect((await refuse('--interrupt')).err).not.toContain(hint)
  },
)

test.each([
  ['y\n', 0, 2],
  ['n\n', 15, 1],
])(
  'events run without --audit prompts on a terminal before it sends the last task again: keys %j',
  async (typed, expected, tasks) => {
    const timers = createIdleClock()
    const service = createAgentService({ rounds: [[says('one')], [says('two')]], timers })
    const world = {
      cwd: temporaryFolder(),
      timers,
      exchange: service.exchange,
      tty: ['stderr' as const],
      env: { NO_COLOR: '1' },
    }
    const argv = ['events', 'run', '-s', 's1', 'go']
    const first = await run(argv, world)
    expect(first.err).not.toContain('[y/N]')
    const { code, err } = await run(argv, { ...world, typed })
    expect({ code, tasks: service.tasks }, err).toEqual({ code: expected, tasks })
    expect(err).toContain(
      "parley: the session's last user.message is the same task\nSend the task once more? [y/N] ",
    )
    if (expected === 15)
      expect(err).toContain(
        'parley: the task was not sent again\n  nothing was sent\n  to resume:\n  parley events run -s s1\n',
      )
  },
)

const taskLines = (lines: Record<string, unknown>[]) =>
  lines.filter(({ task }) => task !== undefined).map(({ event }) => event)

const isTask = ({ method, text }: { method: string; text: string }) =>
  method === 'POST' && JSON.parse(text).events[0].type === 'user.message'

describe('Y134: repeated events run', () => {
  test('events run with the --audit file of a finished task sends the same task again, and the file records the steps of both runs', async () => {
    const { service, again, readAudit } = open({ rounds: [[bash('t1')]] })
    expect((await again()).code).toBe(0)
    expect(taskLines(readAudit())).toEqual(['sent', 'accepted', 'done'])
    expect(readAudit()[0]).toMatchObject({
      session: 's1',
      toolUse: null,
      known: { alike: 0 },
    })
    expect(readAudit()[0]?.task).toMatch(/^[0-9a-f]{32}$/)
    const second = await again()
    expect({ code: second.code, err: second.err, tasks: service.tasks }).toEqual({
      code: 0,
      err: '',
      tasks: 2,
    })
    expect(readAudit().findLast(({ event, task }) => task && event === 'sent')?.known).toMatchObject({
      alike: 1,
    })
    expect((await again({}, ['another'])).code).toBe(0)
    expect(taskLines(readAudit())).toEqual(Array(3).fill(['sent', 'accepted', 'done']).flat())
  })

  test('a task with a denied tool use is done when its turn ends; while tool uses wait, the same command resumes it', async () => {
    const { service, cwd, again, readAudit } = open({ rounds: [[bash('t1')]] })
    writeFileSync(join(cwd, 'p.json'), '{"rules":[]}')
    expect((await again()).code).toBe(12)
    expect(taskLines(readAudit())).toEqual(['sent', 'accepted'])
    const waiting = await again()
    expect({ code: waiting.code, tasks: service.tasks }).toEqual({ code: 12, tasks: 1 })
    expect(waiting.err).toContain(`parley: ${notice}\n`)
    writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"deny"}}')
    expect((await again()).code).toBe(14)
    expect({ tasks: service.tasks, lines: taskLines(readAudit()) }).toEqual({
      tasks: 1,
      lines: ['sent', 'accepted', 'done'],
    })
  })

  test('the same command prints once the answer of a task that ended while no run followed it', async () => {
    const answer: Event = { type: 'agent.message', content: [{ type: 'text', text: 'It is 42.' }] }
    const { service, cwd, again, readAudit } = open({ rounds: [[answer]] }, ['go', '--last'])
    expect((await again()).out).toBe('It is 42.\n')
    const text = readFileSync(join(cwd, 'a.ndjson'), 'utf8')
    writeFileSync(join(cwd, 'a.ndjson'), text.slice(0, text.indexOf('\n', text.indexOf('"accepted"')) + 1))
    const second = await again()
    expect({ code: second.code, out: second.out, tasks: service.tasks }).toEqual({
      code: 0,
      out: 'It is 42.\n',
      tasks: 1,
    })
    expect(taskLines(readAudit())).toEqual(['sent', 'accepted', 'done'])
  })

  test('Y218: after an interrupt, the resume command has words and a --schema that the audit file does not contain', async () => {
    const more = ['--schema', 'number.json']
    const { service, again, cwd } = open({ rounds: [], end: { type: 'session.status_running' } })
    writeFileSync(join(cwd, 'number.json'), '{"type":"number"}')
    const runTask = async (words: string[]) => {
      const { code, err } = await again({}, [...words, ...more, '--deadline', '60'])
      return { code, words: /^ {2}parley events run ('.*?') -s/m.exec(err)?.[1] }
    }
    expect(await runTask(['Go on'])).toEqual({ code: 15, words: undefined })
    service.add({ type: 'user.interrupt' })
    service.add(endTurn)
    const isTold = { code: 15, words: "'Go on, please'" }
    expect([await runTask(['Go on']), await runTask([])]).toEqual([isTold, isTold])
    expect(service.tasks).toBe(1)
    expect(await runTask(['Go on, please'])).toEqual({ code: 15, words: undefined })
    expect(service.tasks).toBe(2)
    service.add({ type: 'user.interrupt' })
    service.add(endTurn)
    expect(await runTask(['Go on, please'])).toEqual({ code: 15, words: "'Go on'" })
  })

  test('events run --audit sends a task again that was certainly not accepted', async () => {
    const { service, again, readAudit } = open({ rounds: [] })
    const refusing: Exchange = async (request) =>
      request.method === 'POST'
        ? { ...(await service.exchange({ ...request, method: 'GET' })), status: 400 }
        : service.exchange(request)
    expect((await again({ exchange: refusing })).code).toBe(4)
    expect(taskLines(readAudit())).toEqual(['sent', 'refused'])
    expect((await again()).code).toBe(0)
    expect(service.tasks).toBe(1)
  })
})

describe('Y135: task of unknown delivery', () => {
  /** The connection breaks before the request arrives at the service, or after. */
  const breaking =
    (service: AgentService, arrives: boolean): Exchange =>
    async (request, onSent) => {
      if (request.method !== 'POST') return service.exchange(request, onSent)
      onSent?.()
      if (arrives) await service.exchange(request, onSent)
      throw new CliError('unknown', 'the connection was reset', { sent: 'unknown' })
    }

  test('events run resumes a task of unknown delivery if the list shows it, even late', async () => {
    const { service, again, readAudit } = open({ rounds: [[bash('t1')]], lag: 100 })
    const first = await again({ exchange: breaking(service, true) })
    expect([first.code, taskLines(readAudit())]).toEqual([10, ['sent', 'unknown']])
    expect(first.err).toContain(
      '  the task may have been accepted: the same command with the same --audit continues the session as soon as its event list contains the task\n',
    )
    const second = await again()
    expect({ code: second.code, tasks: service.tasks }).toEqual({ code: 0, tasks: 1 })
    expect(second.err).toContain(notice)
    expect(taskLines(readAudit())).toEqual(['sent', 'unknown', 'accepted', 'done'])
  })

  test('events run exits with 10 and does not repeat a task of unknown delivery if no list shows it', async () => {
    const { service, again, readAudit } = open({ history: [userSays('go'), endTurn], rounds: [] })
    for (const _ of [1, 2, 3]) expect((await again({ exchange: breaking(service, false) })).code).toBe(10)
    const { code, requests } = await again()
    expect({ code, posts: requests.filter(isTask) }).toEqual({ code: 10, posts: [] })
    expect(taskLines(readAudit())).toEqual(['sent', 'unknown'])
  })

  test('Y223: events run without a task exits with 10 until the list shows the task of unknown delivery', async () => {
    const history = [userSays('night 1'), says('one'), endTurn]
    for (const arrives of [false, true]) {
      const { service, again, readAudit } = open({ history, rounds: [[says('two')]], lag: 100 }, [
        'night 2',
        '--last',
      ])
      expect((await again({ exchange: breaking(service, arrives) })).code).toBe(10)
      const { code, out, err, requests } = await again({}, ['--no-stdin', '--last'])
      expect({ code, out, posts: requests.filter(isTask) }).toEqual({
        code: arrives ? 0 : 10,
        out: arrives ? 'two\n' : '',
        posts: [],
      })
      expect(taskLines(readAudit())).toEqual(
        arrives ? ['sent', 'unknown', 'accepted', 'done'] : ['sent', 'unknown'],
      )
      if (arrives) continue
      expect(err).toContain('an earlier run began to send the task, and it is not known whether it arrived\n')
      expect(err).toContain(
        "  check with 'parley events list -s s1'\n  as soon as the event list of the session contains the task, the same command continues the session; to send the task once more, name another --audit file\n",
      )
      expect(err).toContain('  parley events run -s s1 --no-stdin --policy p.json --audit a.ndjson --tool ')
      const forPrograms = await again({}, ['--no-stdin', '--last', '--errors', 'json', '-q'])
      expect(JSON.parse(forPrograms.err).error.hints).toEqual([
        "check with 'parley events list -s s1'",
        'as soon as the event list of the session contains the task, the same command continues the session; to send the task once more, name another --audit file',
      ])
    }
  })
})

test('Y226: the same command resumes an accepted task whose response was cut, and sends nothing twice', async () => {
  const { service, again } = open({ rounds: [[bash('t1')]], taskOutcome: () => 'cuts' })
  const first = await again({}, ['go', '--errors', 'json'])
  expect(JSON.parse(first.err).error).toMatchObject({ exit: 8, sent: 'yes', retry: 'later' })
  const second = await again()
  expect({ code: second.code, tasks: service.tasks }).toEqual({ code: 0, tasks: 1 })
  expect(second.err).toContain(notice)
})

describe('Y138: accepted task that the list does not show yet', () => {
  test('events run exits with 10 instead of printing an older answer if the list does not show the task', async () => {
    let shown: number | undefined
    const { service, cwd, again, readAudit, timers } = open(
      { history: [userSays('old'), says('old'), endTurn], rounds: [[says('new')]], onList: () => shown },
      ['go', '--last'],
    )
    expect((await again()).out).toBe('new\n')
    const path = join(cwd, 'a.ndjson')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.slice(0, text.indexOf('\n', text.indexOf('"accepted"')) + 1))
    // The list shows all events before the task, and then fewer.
    for (const count of [3, 2, 0]) {
      shown = count
      const [same, goingOn] = [await again(), await again({}, ['--no-stdin', '--last'])]
      for (const { code, out, err, requests } of [same, goingOn]) {
        expect({ count, code, out, posts: requests.filter(isTask) }).toEqual({
          count,
          code: 10,
          out: '',
          posts: [],
        })
        expect(err).toContain('the task was accepted, but the session does not show it yet\n  check with ')
        expect(err).toContain(
          'as soon as the event list of the session contains the task, the same command continues the session; to send the task once more, name another --audit file\n',
        )
        expect(err).toContain('  parley events run -s s1 --no-stdin')
      }
    }
    expect(taskLines(readAudit())).toEqual(['sent', 'accepted'])
    // The printed command resumes the run, with its --audit and without.
    const failed = await again({}, ['--no-stdin', '--last', '--errors', 'json'])
    const { resume } = JSON.parse(failed.err).error as { resume: string[] }
    const paste = async (words: string[]) => {
      const { code, out } = await run(words, { cwd, timers, stdinKind: 'none', exchange: service.exchange })
      return { code, out, tasks: service.tasks, lines: taskLines(readAudit()) }
    }
    shown = 3
    const withoutAudit = resume.toSpliced(resume.indexOf('--audit'), 2)
    const before = ['sent', 'accepted']
    expect(await paste(withoutAudit)).toEqual({ code: 0, out: 'old\n', tasks: 1, lines: before })
    shown = undefined
    const done = [...before, 'done']
    expect(await paste(resume)).toEqual({ code: 0, out: 'new\n', tasks: 1, lines: done })
  })
})

class Death extends Error {}

/**
 * Creates a host that dies at point `at`. A point is before a request, after its response, or after an audit
 * line.
 */
function dieAt(
  at: number,
  { service, cwd, timers }: Pick<ReturnType<typeof open>, 'service' | 'cwd' | 'timers'>,
) {
  let left = at
  let isDead = false
  let size = 0
  const live = (isPoint: boolean) => {
    isDead ||= isPoint && left-- === 0
    if (isDead) throw new Death()
  }
  const readSize = () => statSync(join(cwd, 'a.ndjson'), { throwIfNoEntry: false })?.size ?? 0
  const exchange: Exchange = async (request, onSent) => {
    live(true)
    const response: HttpResponse = await service.exchange(request, onSent)
    live(true)
    return response
  }
  const now = () => {
    const grown = readSize() > size
    size = readSize()
    // A run that has removed its lock file only prints why it ended.
    if (!isDead || existsSync(join(cwd, getLockPath('a.ndjson')))) live(grown)
    return timers.now()
  }
  return {
    exchange,
    timers: {
      random: timers.random,
      now,
      wallTime: now,
      // After the simulated crash, timers never fire.
      async wait(milliseconds: number, signal?: AbortSignal) {
        await timers.wait(milliseconds, signal)
        if (isDead) await new Promise(() => {})
      },
    },
  }
}

test('Y136: events run killed at any request or audit line sends nothing twice if it is repeated (needs sh)', async () => {
  const ends: string[] = []
  for (let at = 0; ; at++) {
    const opened = open({ rounds: [[bash('t1')], [custom('c2')]] })
    const { service, cwd, again, readAudit } = opened
    const first = await again(dieAt(at, opened))
    if (first.code !== 1) {
      expect(first.code).toBe(0)
      break
    }
    expect(first.err).toContain('a bug in parley')
    const second = await again()
    const runs = existsSync(join(cwd, 'runs'))
      ? readFileSync(join(cwd, 'runs'), 'utf8').trim().split('\n')
      : []
    const twice = [...service.acceptedReplies].filter(([, answers]) => answers.length > 1)
    const isTaskInDoubt = second.err.includes('began to send the task, and it is not known')
    expect({ at, tasks: service.tasks, twice, runs }).toEqual({
      at,
      tasks: isTaskInDoubt ? 0 : 1,
      twice: [],
      runs: [...new Set(runs)],
    })
    // The delivery of a task or a reply is sometimes unknown.
    if (second.code === 10) expect(second.err).toMatch(/it is not known whether (it arrived|the answer to)/)
    else expect({ at, code: second.code, err: second.err }).toMatchObject({ at, code: 0 })
    ends.push(`${taskLines(readAudit()).join(' ')} ${second.code}`)
  }
  expect(new Set(ends)).toEqual(new Set(['sent accepted done 0', 'sent accepted 10', 'sent 10']))
}, 120_000)
