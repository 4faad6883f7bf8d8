import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { CliError } from '../../../src/errors.ts'
import { type Exchange, type HttpResponse, readBody } from '../../../src/wire/exchange.ts'
import { createPatientClock } from '../../harness/clock.ts'
import { answering, run, temporaryFolder } from '../../harness/run.ts'
import {
  type AgentScript,
  type AgentService,
  createAgentService,
  type Event,
  lockOf,
} from './agent-service.ts'

const use = (id: string): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: {},
  evaluated_permission: 'ask',
})
const custom = (id: string): Event => ({ id, type: 'agent.custom_tool_use', name: 'count', input: {} })
const said = (text: string): Event => ({ type: 'user.message', content: [{ type: 'text', text }] })
const answer = (text: string): Event => ({ type: 'agent.message', content: [{ type: 'text', text }] })
const rest: Event = { type: 'session.status_idle', stop_reason: { type: 'end_turn' } }

const notice =
  'the audit says that an earlier run sent this task: it is not sent again, the session is taken up'

/** What runs one and the same line again and again, by one clock, on a service that may die on the way. */
function open(script: AgentScript, words = ['go']) {
  const timers = createPatientClock()
  const service = createAgentService({ ...script, timers })
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  const argv = ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'a.ndjson']
  const tool = ['--tool', 'count=echo $PARLEY_TOOL_USE_ID >> runs']
  const again = (more: Parameters<typeof run>[1] = {}, line = words) =>
    run([...argv, ...tool, ...line], {
      cwd,
      timers,
      stdinKind: 'none',
      exchange: service.exchange,
      ...more,
    })
  const journal = (): Record<string, unknown>[] =>
    existsSync(join(cwd, 'a.ndjson'))
      ? readFileSync(join(cwd, 'a.ndjson'), 'utf8')
          .split('\n')
          .slice(0, -1)
          .map((line) => JSON.parse(line))
      : []
  return { service, cwd, again, journal, timers }
}

const onceMore = "parley: the session's last user.message is this very task: it is sent once more\n"

test('with no audit, a warning says before it that a task is sent once more, also under -q', async () => {
  const timers = createPatientClock()
  const service = createAgentService({
    rounds: [[answer('one')], [answer('two')], [answer('three')]],
    timers,
  })
  const cwd = temporaryFolder()
  const go = (words: string[], exchange = service.exchange) =>
    run(['events', 'run', '-s', 's1', '-q', ...words], { cwd, timers, stdinKind: 'none', exchange })
  expect((await go(['go'])).err).toBe('')
  expect((await go(['go'])).err).toBe(onceMore)
  const refusing: Exchange = (request, onSent) =>
    request.method === 'POST' ? answering('{}', { status: 400 })(request) : service.exchange(request, onSent)
  expect((await go(['go'], refusing)).err).toContain(onceMore)
  expect((await go(['go on'])).err).toBe('')
  expect((await go(['go'])).err).toBe('')
  expect(service.tasks).toBe(4)
})

const taskLines = (journal: Record<string, unknown>[]) =>
  journal.filter(({ task }) => task !== undefined).map(({ event }) => event)

const isTask = ({ method, text }: { method: string; text: string }) =>
  method === 'POST' && JSON.parse(text).events[0].type === 'user.message'

describe('Y134: the same line again', () => {
  test('sends the task anew if it is done, and the journal has each step of it', async () => {
    const { service, again, journal } = open({ rounds: [[use('t1')]] })
    expect((await again()).code).toBe(0)
    expect(taskLines(journal())).toEqual(['sent', 'accepted', 'done'])
    expect(journal()[0]).toMatchObject({
      session: 's1',
      toolUse: null,
      known: { alike: 0 },
    })
    expect(journal()[0]?.task).toMatch(/^[0-9a-f]{32}$/)
    const second = await again()
    expect({ code: second.code, err: second.err, tasks: service.tasks }).toEqual({
      code: 0,
      err: '',
      tasks: 2,
    })
    expect(journal().findLast(({ event, task }) => task && event === 'sent')?.known).toMatchObject({
      alike: 1,
    })
    expect((await again({}, ['another'])).code).toBe(0)
    expect(taskLines(journal())).toEqual(Array(3).fill(['sent', 'accepted', 'done']).flat())
  })

  test('is done after a denial too, and not while tool uses wait: then it goes on', async () => {
    const { service, cwd, again, journal } = open({ rounds: [[use('t1')]] })
    writeFileSync(join(cwd, 'p.json'), '{"rules":[]}')
    expect((await again()).code).toBe(12)
    expect(taskLines(journal())).toEqual(['sent', 'accepted'])
    const waiting = await again()
    expect({ code: waiting.code, tasks: service.tasks }).toEqual({ code: 12, tasks: 1 })
    expect(waiting.err).toContain(`parley: ${notice}\n`)
    writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"deny"}}')
    expect((await again()).code).toBe(14)
    expect({ tasks: service.tasks, lines: taskLines(journal()) }).toEqual({
      tasks: 1,
      lines: ['sent', 'accepted', 'done'],
    })
  })

  test('prints the answer of a task that came to its end while nobody followed it, once', async () => {
    const answer: Event = { type: 'agent.message', content: [{ type: 'text', text: 'It is 42.' }] }
    const { service, cwd, again, journal } = open({ rounds: [[answer]] }, ['go', '--last'])
    expect((await again()).out).toBe('It is 42.\n')
    const text = readFileSync(join(cwd, 'a.ndjson'), 'utf8')
    writeFileSync(join(cwd, 'a.ndjson'), text.slice(0, text.indexOf('\n', text.indexOf('"accepted"')) + 1))
    const second = await again()
    expect({ code: second.code, out: second.out, tasks: service.tasks }).toEqual({
      code: 0,
      out: 'It is 42.\n',
      tasks: 1,
    })
    expect(taskLines(journal())).toEqual(['sent', 'accepted', 'done'])
  })

  test('the command that goes on with it makes it done', async () => {
    const { service, cwd, again, journal } = open({ rounds: [[use('t1')]] })
    writeFileSync(join(cwd, 'p.json'), '{"rules":[]}')
    expect((await again()).code).toBe(12)
    writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
    expect((await again({}, ['--no-stdin'])).code).toBe(0)
    expect(taskLines(journal())).toEqual(['sent', 'accepted', 'done'])
    expect((await again()).code).toBe(0)
    expect(service.tasks).toBe(2)
  })

  test.each([
    ['', []],
    [' for a form of the answer', ['--schema', 'number.json']],
  ])('Y218: goes on after an interrupt with words%s that the journal does not have', async (_, more) => {
    const { service, again, cwd } = open({ rounds: [], end: { type: 'session.status_running' } })
    writeFileSync(join(cwd, 'number.json'), '{"type":"number"}')
    const goOn = async (words: string[]) => {
      const { code, err } = await again({}, [...words, ...more, '--deadline', '60'])
      return { code, words: /^ {2}parley events run ('.*?') -s/m.exec(err)?.[1] }
    }
    expect(await goOn(['Go on'])).toEqual({ code: 15, words: undefined })
    service.add({ type: 'user.interrupt' })
    service.add(rest)
    const isTold = { code: 15, words: "'Go on, please'" }
    expect([await goOn(['Go on']), await goOn([])]).toEqual([isTold, isTold])
    expect(service.tasks).toBe(1)
    expect(await goOn(['Go on, please'])).toEqual({ code: 15, words: undefined })
    expect(service.tasks).toBe(2)
    service.add({ type: 'user.interrupt' })
    service.add(rest)
    expect(await goOn(['Go on, please'])).toEqual({ code: 15, words: "'Go on'" })
  })

  test('another task, or one of another session, is sent', async () => {
    const { service, cwd, again } = open({ rounds: [[use('t1')]] })
    writeFileSync(join(cwd, 'p.json'), '{"rules":[]}')
    expect((await again()).code).toBe(12)
    expect((await again({}, ['go on'])).err).not.toContain(notice)
    expect(service.tasks).toBe(2)
    const other = createAgentService({ rounds: [] })
    expect((await again({ exchange: other.exchange }, ['go', '-s', 's2'])).code).toBe(0)
    expect(other.tasks).toBe(1)
  })

  test('a task that was certainly not taken is sent', async () => {
    const { service, again, journal } = open({ rounds: [] })
    const refusing: Exchange = async (request) =>
      request.method === 'POST'
        ? { ...(await service.exchange({ ...request, method: 'GET' })), status: 400 }
        : service.exchange(request)
    expect((await again({ exchange: refusing })).code).toBe(4)
    expect(taskLines(journal())).toEqual(['sent', 'refused'])
    expect((await again()).code).toBe(0)
    expect(service.tasks).toBe(1)
  })
})

describe('Y135: a task of which it is not known whether it arrived', () => {
  /** The connection breaks before the service has it, or after. */
  const breaking =
    (service: AgentService, arrives: boolean): Exchange =>
    async (request, onSent) => {
      if (request.method !== 'POST') return service.exchange(request, onSent)
      onSent?.()
      if (arrives) await service.exchange(request, onSent)
      throw new CliError('unknown', 'the connection was reset', { sent: 'unknown' })
    }

  test('is taken up if the list shows it, however late', async () => {
    const { service, again, journal } = open({ rounds: [[use('t1')]], lag: 100 })
    const first = await again({ exchange: breaking(service, true) })
    expect([first.code, taskLines(journal())]).toEqual([10, ['sent', 'unknown']])
    expect(first.err).toContain(
      '  the task may have been accepted: the same command with the same --audit resumes it once the session shows it\n',
    )
    const second = await again()
    expect({ code: second.code, tasks: service.tasks }).toEqual({ code: 0, tasks: 1 })
    expect(second.err).toContain(notice)
    expect(taskLines(journal())).toEqual(['sent', 'unknown', 'accepted', 'done'])
  })

  test('ends with 10 if the list shows all but it, however late: something on the way may still have it', async () => {
    const { service, again, journal } = open({ history: [said('go'), rest], rounds: [] })
    for (const _ of [1, 2, 3]) expect((await again({ exchange: breaking(service, false) })).code).toBe(10)
    const { code, requests } = await again()
    expect({ code, posts: requests.filter(isTask) }).toEqual({ code: 10, posts: [] })
    expect(taskLines(journal())).toEqual(['sent', 'unknown'])
  })

  test('Y223: is not gone on with in place of the task before: without words it is 10, too, until the list shows it', async () => {
    const spoken = (text: string): Event => ({ type: 'agent.message', content: [{ type: 'text', text }] })
    const history = [said('night 1'), spoken('one'), rest]
    for (const arrives of [false, true]) {
      const { service, again, journal } = open({ history, rounds: [[spoken('two')]], lag: 100 }, [
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
      expect(taskLines(journal())).toEqual(
        arrives ? ['sent', 'unknown', 'accepted', 'done'] : ['sent', 'unknown'],
      )
      if (arrives) continue
      expect(err).toContain('an earlier run began to send the task, and it is not known whether it arrived\n')
      expect(err).toContain(
        "  look with 'parley events list -s s1'\n  once the session shows the task, the same command goes on with it; to send it once more, name another --audit file\n",
      )
      expect(err).toContain('  parley events run -s s1 --no-stdin --policy p.json --audit a.ndjson --tool ')
    }
  })

  test('says that it looks for it before it waits', async () => {
    const { service, again, timers } = open({ rounds: [] })
    expect((await again({ exchange: breaking(service, false) })).code).toBe(10)
    const stop = new Error('the first wait')
    const waiting = { ...timers, wait: () => Promise.reject(stop) }
    const { err } = await again({ timers: waiting })
    expect(err).toContain('looking for the task in the session, for up to 30 s\n')
  })

  test('ends with 10 if something happened meanwhile that a list without clients shows: nothing is sent', async () => {
    const { service, again, journal } = open({ rounds: [] })
    expect((await again({ exchange: breaking(service, false) })).code).toBe(10)
    service.add({ type: 'agent.message', content: [] })
    service.add(rest)
    const { code, err, requests } = await again()
    expect({ code, posts: requests.filter(isTask) }).toEqual({ code: 10, posts: [] })
    expect(err).toContain('an earlier run began to send the task, and it is not known whether it arrived')
    expect(err).toContain(
      "  look with 'parley events list -s s1'\n  once the session shows the task, the same command goes on with it; to send it once more, name another --audit file\n",
    )
    expect(err).not.toContain('parley events run')
    expect(err.match(/looking for[^\n]*/g)).toEqual(['looking for the task in the session, for up to 30 s'])
    expect(taskLines(journal())).toEqual(['sent', 'unknown'])
  })

  test('ends with 10 if a message came that says something else: the service may have changed its words', async () => {
    const { service, again, journal } = open({ history: [said('old'), rest], rounds: [] }, ['  go  '])
    const trimming: Exchange = (request, onSent) =>
      breaking(service, true)(
        request.body
          ? { ...request, body: Buffer.from(Buffer.from(request.body).toString().replace('  go  ', 'go')) }
          : request,
        onSent,
      )
    expect((await again({ exchange: trimming })).code).toBe(10)
    const { code, err } = await again({ exchange: trimming })
    expect({ code, tasks: service.tasks }).toEqual({ code: 10, tasks: 1 })
    expect(err).toContain('an earlier run began to send the task, and it is not known whether it arrived')
    expect(taskLines(journal())).toEqual(['sent', 'unknown'])
  })

  test('ends with 10 as long as the session works: the task may wait for its turn', async () => {
    const { service, again } = open({ history: [said('other')], rounds: [] })
    expect((await again({ exchange: breaking(service, false) })).code).toBe(10)
    const { code, requests } = await again()
    expect({ code, posts: requests.filter(isTask) }).toEqual({ code: 10, posts: [] })
  })
})

test('Y226: an accepted task whose receipt is cut off: the same line may be run again, and sends nothing twice', async () => {
  const { service, again } = open({ rounds: [[use('t1')]], taskFate: () => 'cuts' })
  const first = await again({}, ['go', '--errors', 'json'])
  expect(JSON.parse(first.err).error).toMatchObject({ exit: 8, sent: 'yes', retry: 'later' })
  const second = await again()
  expect({ code: second.code, tasks: service.tasks }).toEqual({ code: 0, tasks: 1 })
  expect(second.err).toContain(notice)
})

describe('Y138: an accepted task that the list does not show yet', () => {
  const spoken = (text: string): Event => ({ type: 'agent.message', content: [{ type: 'text', text }] })

  test('ends with 10, with and without its words, and the answer of before is not its answer', async () => {
    let shown: number | undefined
    const { service, cwd, again, journal, timers } = open(
      { history: [said('old'), spoken('old'), rest], rounds: [[spoken('new')]], onList: () => shown },
      ['go', '--last'],
    )
    expect((await again()).out).toBe('new\n')
    const path = join(cwd, 'a.ndjson')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.slice(0, text.indexOf('\n', text.indexOf('"accepted"')) + 1))
    // The whole of what was there before, and still less.
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
        expect(err).toContain('the task was accepted, but the session does not show it yet\n  look with ')
        expect(err).toContain(
          'once the session shows the task, the same command goes on with it; to send it once more, name another --audit file\n',
        )
        expect(err).toContain('  parley events run -s s1 --no-stdin')
      }
    }
    expect(taskLines(journal())).toEqual(['sent', 'accepted'])
    // Both do what the words say.
    const told = await again({}, ['--no-stdin', '--last', '--errors', 'json'])
    const { resume } = JSON.parse(told.err).error as { resume: string[] }
    const paste = async (words: string[]) => {
      const { code, out } = await run(words, { cwd, timers, stdinKind: 'none', exchange: service.exchange })
      return { code, out, tasks: service.tasks, journal: taskLines(journal()) }
    }
    shown = 3
    const withoutAudit = resume.toSpliced(resume.indexOf('--audit'), 2)
    const before = ['sent', 'accepted']
    expect(await paste(withoutAudit)).toEqual({ code: 0, out: 'old\n', tasks: 1, journal: before })
    shown = undefined
    const done = [...before, 'done']
    expect(await paste(resume)).toEqual({ code: 0, out: 'new\n', tasks: 1, journal: done })
  })

  test('is taken up by what came since if the list leaves out what clients do', async () => {
    const { service, cwd, again } = open({ history: [spoken('old'), rest], rounds: [[spoken('new')]] }, [
      'go',
      '--last',
    ])
    const silent: Exchange = async (request, onSent) => {
      const response = await service.exchange(request, onSent)
      if (request.method === 'POST' || request.url.includes('/stream')) return response
      const { data } = JSON.parse(Buffer.from(await readBody(response.body)).toString()) as { data: Event[] }
      const shown = JSON.stringify({ data: data.filter(({ type }) => !type.startsWith('user.')) })
      return answering(shown)(request)
    }
    expect((await again({ exchange: silent })).out).toBe('new\n')
    const path = join(cwd, 'a.ndjson')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, text.slice(0, text.indexOf('\n', text.indexOf('"accepted"')) + 1))
    const { code, out } = await again({ exchange: silent })
    expect({ code, out, tasks: service.tasks }).toEqual({ code: 0, out: 'new\n', tasks: 1 })
  })
})

class Death extends Error {}

/** A host that dies at its `at`th point: before a request leaves, when it was answered, or once a line is in the journal. */
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
  const sizeOf = () => statSync(join(cwd, 'a.ndjson'), { throwIfNoEntry: false })?.size ?? 0
  const exchange: Exchange = async (request, onSent) => {
    live(true)
    const response: HttpResponse = await service.exchange(request, onSent)
    live(true)
    return response
  }
  const now = () => {
    const grown = sizeOf() > size
    size = sizeOf()
    // A run that gave its lock back only says why it ended.
    if (!isDead || existsSync(join(cwd, lockOf('a.ndjson')))) live(grown)
    return timers.now()
  }
  return {
    exchange,
    timers: {
      random: timers.random,
      now,
      wallTime: now,
      // A machine that is off wakes nobody.
      async wait(milliseconds: number, signal?: AbortSignal) {
        await timers.wait(milliseconds, signal)
        if (isDead) await new Promise(() => {})
      },
    },
  }
}

test('Y136: killed at each request and each line of the journal, the same line sends nothing twice (needs sh)', async () => {
  const ends: string[] = []
  for (let at = 0; ; at++) {
    const opened = open({ rounds: [[use('t1'), custom('c1')], [custom('c2')]] })
    const { service, cwd, again, journal } = opened
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
    const twice = [...service.taken].filter(([, answers]) => answers.length > 1)
    const isTaskInDoubt = second.err.includes('began to send the task, and it is not known')
    expect({ at, tasks: service.tasks, twice, runs }).toEqual({
      at,
      tasks: isTaskInDoubt ? 0 : 1,
      twice: [],
      runs: [...new Set(runs)],
    })
    // What became of a task or a reply cannot always be known.
    if (second.code === 10) expect(second.err).toMatch(/it is not known whether (it arrived|the answer to)/)
    else expect({ at, code: second.code, err: second.err }).toMatchObject({ at, code: 0 })
    ends.push(`${taskLines(journal()).join(' ')} ${second.code}`)
  }
  expect(new Set(ends)).toEqual(new Set(['sent accepted done 0', 'sent accepted 10', 'sent 10']))
}, 120_000)
