import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { createEmulator } from '../../../src/emulator/emulator.ts'
import type { Timers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createClock, createIdleClock } from '../../harness/clock.ts'
import { answering, createFastClock, type RunOptions, run, temporaryFolder } from '../../harness/run.ts'
import {
  createSessionService,
  type Event,
  endTurn,
  interrupt,
  running,
  says,
  waitsFor,
} from '../../harness/session-service.ts'

const usage = (tokens: number, cents?: number) => ({
  input_tokens: tokens,
  ...(cents === undefined ? {} : { list_cost: { amount: String(cents), currency: 'USD' } }),
})
const request = (tokens: number): Event => ({ type: 'span.model_request_end', model_usage: usage(tokens) })
const createUsageEvent = (tokens: number, cents?: number): Event => ({
  type: 'session.usage',
  usage: usage(tokens, cents),
})
const soFar = says('so far')

interface Script {
  history?: Event[]
  /** Events after the task. */
  work: Event[]
  /** If true, the task is queued, so an idle event does not end it. */
  isQueued?: boolean
  /** Events after an accepted interrupt. Default: an idle event. */
  end?: Event[]
  /** Outcome of the nth posted interrupt. */
  outcome?(count: number): 'takes' | 'loses' | 'limits' | number
  /** Number of times that the service refuses the task, each time for 45 s. */
  refusals?: number
  /** Returns the session resource for the nth query. */
  getSession?(count: number): object | 'hangs'
  onInterrupt?(): void
  /** Called when a follower connects. */
  onStream?(add: (...events: Event[]) => void): void
}

/** Creates a session whose agent works until it is interrupted, or until its work ends with an idle event. */
function service(script: Script, timers: Timers = createIdleClock()) {
  const { history = [], work, end = [endTurn], isQueued = false, refusals = 0 } = script
  const counts = { interrupts: 0, asked: 0, tasks: 0 }
  const { add, events, exchange } = createSessionService({
    timers,
    history,
    posts([first]) {
      if (first?.type !== 'user.interrupt') {
        if (++counts.tasks <= refusals) return { fault: { status: 429, headers: { 'retry-after': '45' } } }
        return {
          response: 'no data',
          posted: isQueued ? { processed: 'never' } : {},
          next: first?.type === 'user.message' ? [running, ...work] : [],
        }
      }
      script.onInterrupt?.()
      counts.interrupts++
      const outcome = script.outcome?.(counts.interrupts) ?? 'takes'
      if (outcome === 'takes') return { response: 'no data', next: end }
      if (outcome === 'loses') return { fault: 'reset' }
      if (outcome === 'limits') return { fault: { status: 429, headers: { 'retry-after': '20' } } }
      return { fault: { status: outcome } }
    },
    streams: [{ act: () => setImmediate(() => script.onStream?.(add)) }],
    session() {
      counts.asked++
      const session = script.getSession?.(counts.asked)
      return session === 'hangs' ? 'stall' : (session ?? { status: 404 })
    },
  })
  return { exchange, counts, events, timers }
}

async function ran(script: Script, flags: string[], world: RunOptions = {}, clock?: Timers) {
  const cwd = temporaryFolder()
  const served = service(script, clock ?? world.timers)
  const argv = ['events', 'run', 'Do it', '-s', 's', '--no-stdin', '--report', 'report.json', ...flags]
  const ended = await run(argv, { cwd, exchange: served.exchange, timers: served.timers, ...world })
  return { ...ended, ...served, cwd, report: JSON.parse(readFileSync(join(cwd, 'report.json'), 'utf8')) }
}

describe('events run that reaches a limit', () => {
  test('events run over --max-total-tokens interrupts the session once, prints the later events, and exits with 15', async () => {
    const { code, out, err, report, counts } = await ran(
      { work: [soFar, request(50), request(60)], end: [{ ...soFar, content: 'a late word' }, endTurn] },
      ['--max-total-tokens', '100'],
    )
    expect(code).toBe(15)
    expect(counts).toMatchObject({ interrupts: 1 })
    expect(out).toContain('a late word\n')
    expect(err).toContain('the run used 110 tokens, and --max-total-tokens is 100')
    expect(err).toContain(
      "parley events run 'Go on' -s s --no-stdin --report report.json --max-total-tokens 100\n",
    )
    expect(report).toMatchObject({
      exit: 15,
      kind: 'stopped',
      sent: 'yes',
      retry: 'never',
      resume: [
        'events',
        'run',
        'Go on',
        '-s',
        's',
        '--no-stdin',
        '--report',
        'report.json',
        '--max-total-tokens',
        '100',
      ],
      usage: { inputTokens: 110, outputTokens: null, totalTokens: 110 },
      cost: null,
      sessionUsage: null,
      sessionCost: null,
    })
  })

  test('--max-total-tokens interrupts although a request lacks its usage, and the report has no total', async () => {
    const work = [request(60), { type: 'span.model_request_end' }, request(60)]
    const { code, err, counts, report } = await ran({ work }, ['--max-total-tokens', '100'])
    expect({ code, counts }).toMatchObject({ code: 15, counts: { interrupts: 1 } })
    expect(err).toContain('the run used at least 120 tokens, and --max-total-tokens is 100')
    expect(report).toMatchObject({ usage: { totalTokens: null }, cost: null })
  })

  test('events run writes an interrupt to the audit file before it posts the interrupt', async () => {
    const cwd = temporaryFolder()
    let before = ''
    const lines = () => readFileSync(join(cwd, 'a.ndjson'), 'utf8')
    const onInterrupt = () => {
      before = lines()
    }
    const ended = await ran({ work: [request(200)], onInterrupt }, [
      '--max-total-tokens',
      '100',
      '--audit',
      join(cwd, 'a.ndjson'),
    ])
    expect(ended.code).toBe(15)
    const line = JSON.parse(before.trimEnd().split('\n').at(-1) ?? '')
    expect(line).toMatchObject({ session: 's', toolUse: null, event: 'interrupt' })
    expect(lines().match(/"interrupt"/g)).toHaveLength(1)
    expect(ended.report.retry).toBe('never')
    expect(ended.report.resume.slice(0, 5)).toEqual(['events', 'run', 'Go on', '-s', 's'])
  })

  /** Runs without a task. In the audit file, an earlier run started an interrupt `ago` milliseconds ago. */
  async function afterInterrupt(
    history: Event[],
    { since = [] as Event[], ago = 0, flags = ['--max-total-tokens', '100'] } = {},
  ) {
    const cwd = temporaryFolder()
    const clock = createIdleClock()
    const file = join(cwd, 'a.ndjson')
    const time = new Date(clock.wallTime() - ago).toISOString()
    const line = { time, session: 's', toolUse: null, event: 'interrupt', rest: 'r0' }
    writeFileSync(file, `${JSON.stringify(line)}\n`)
    const sentAt: number[] = []
    const start = clock.now()
    const { exchange, counts } = service(
      {
        history,
        work: [],
        onStream: (add) => add(...since),
        onInterrupt: () => sentAt.push(clock.now() - start),
      },
      clock,
    )
    const argv = ['events', 'run', '-s', 's', '--no-stdin', '--audit', file, '--errors', 'json', ...flags]
    const ended = await run(argv, { cwd, exchange, timers: clock })
    return { ...ended, counts, sentAt }
  }

  const r0: Event = { ...endTurn, id: 'r0' }
  const userMessage: Event = { type: 'user.message' }

  test.each<[string, Event[]]>([
    ['lists omit the events of clients', [running, r0, running, soFar, endTurn]],
    [
      'the list shows the interrupt',
      [userMessage, running, r0, userMessage, running, soFar, interrupt, endTurn],
    ],
  ])(
    'events run has exit 15, "retry": "never" and no answer if an earlier run interrupted the turn: %s',
    async (_, history) => {
      const { code, out, err, counts } = await afterInterrupt(history, { flags: ['--last'] })
      expect({ code, out, interrupts: counts.interrupts }).toEqual({ code: 15, out: '', interrupts: 0 })
      const { retry, resume } = JSON.parse(err).error
      expect(retry).toBe('never')
      expect(resume.slice(0, 5)).toEqual(['events', 'run', 'Go on', '-s', 's'])
    },
  )

  test('events run prints the answer although an earlier run may have interrupted the turn, if the list shows the events of clients, and no interrupt', async () => {
    const { code, out } = await afterInterrupt(
      [userMessage, running, r0, userMessage, running, soFar, endTurn],
      { flags: ['--last'] },
    )
    expect({ code, out }).toEqual({ code: 0, out: 'so far\n' })
  })

  test.each<[string, Event[], number, number]>([
    ['is not sent again within 30 s', [running], 10_000, 20_000],
    ['is sent again after 30 s', [running], 40_000, 1_000],
  ])('an interrupt that an earlier run recorded %s', async (_, before, ago, wait) => {
    const history = [running, r0, ...before]
    const { code, sentAt, counts } = await afterInterrupt(history, { since: [request(200)], ago })
    expect([code, counts.interrupts]).toEqual([15, 1])
    expect(sentAt[0]).toBeGreaterThanOrEqual(wait)
    expect(sentAt[0]).toBeLessThan(wait + 5_000)
  })

  test('an interrupt that an earlier run recorded is not sent again if the list shows it', async () => {
    const history = [userMessage, running, r0, userMessage, running, interrupt]
    const { code, counts } = await afterInterrupt(history, { since: [request(200)], ago: 40_000 })
    expect([code, counts.interrupts]).toEqual([15, 0])
  })

  test('--max-total-tokens does not count the usage from before the run', async () => {
    const history = [userMessage, running, request(200), soFar]
    const { exchange, counts, timers } = service({
      history,
      work: [],
      onStream: (add) => add(request(50), { ...soFar, content: 'the end' }, endTurn),
    })
    const argv = ['events', 'run', '-s', 's', '--no-stdin', '--max-total-tokens', '100', '--last']
    const { code, out, err } = await run(argv, { exchange, timers })
    expect({ code, out, err, interrupts: counts.interrupts }).toEqual({
      code: 0,
      out: 'the end\n',
      err: '',
      interrupts: 0,
    })
  })

  test.each<[string, Script['outcome'], number]>([
    ['without a response is not posted again', () => 'loses', 1],
    ['is posted again after a 429', (count) => (count === 1 ? 429 : 'takes'), 2],
    ['is not posted again after a 400', () => 400, 1],
  ])('events run exits with 15 at a limit; an interrupt %s', async (_, outcome, times) => {
    const { code, counts } = await ran({ work: [request(200)], ...(outcome ? { outcome } : {}) }, [
      '--max-total-tokens',
      '100',
    ])
    expect(code).toBe(15)
    expect(counts.interrupts).toBe(times)
  })

  /**
   * Runs a task whose interrupt is delayed until the session has stopped working. `then` are the events
   * during the delay.
   */
  async function limited(then: Event[], { flags = [] as string[], isQueued = false } = {}) {
    const clock = createIdleClock()
    let add: (...events: Event[]) => void = () => {}
    let waits = 0
    const script: Script = {
      isQueued,
      work: [soFar, request(200)],
      outcome: (count) => (count === 1 ? 'limits' : 'takes'),
      onStream: (adds) => {
        add = adds
      },
    }
    const timers = {
      ...clock,
      wait(milliseconds: number, signal?: AbortSignal) {
        if (milliseconds !== 20_000) return clock.wait(milliseconds, signal)
        waits++
        add(...then)
        // The delay ends only if the caller stops it.
        return new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
      },
    }
    const cwd = temporaryFolder()
    const argv = ['--max-total-tokens', '100', '--audit', join(cwd, 'a.ndjson'), ...flags]
    const ended = await ran(script, argv, { timers }, clock)
    const lines = readFileSync(join(cwd, 'a.ndjson'), 'utf8').trimEnd().split('\n')
    return { ...ended, waits, auditEvents: lines.map((line) => JSON.parse(line).event) }
  }

  test('events run prints the answer and cancels a delayed interrupt if the turn ends by itself', async () => {
    const { code, out, err, counts, waits, auditEvents } = await limited([endTurn], { flags: ['--last'] })
    expect({ code, out, waits, interrupts: counts.interrupts }).toEqual({
      code: 0,
      out: 'so far\n',
      waits: 1,
      interrupts: 1,
    })
    expect(err).toContain('--max-total-tokens is 100; the agent has already finished\n')
    // The recorded refusal lets a later run interrupt its own turn.
    expect(auditEvents).toEqual(['sent', 'accepted', 'interrupt', 'refused', 'done'])
  })

  test('events run interrupts again if the session becomes idle and works again during the delay of an interrupt', async () => {
    const then = [endTurn, running, request(50)]
    const { code, counts, waits, auditEvents } = await limited(then, { isQueued: true })
    expect({ code, waits, interrupts: counts.interrupts }).toEqual({ code: 15, waits: 1, interrupts: 2 })
    expect(auditEvents).toEqual(['sent', 'accepted', 'interrupt', 'refused', 'interrupt'])
  })

  test('events run exits with 15 at once if its interrupt is refused; a rerun may interrupt again', async () => {
    const cwd = temporaryFolder()
    const flags = ['--max-total-tokens', '100', '--audit', join(cwd, 'a.ndjson')]
    const timers = createIdleClock()
    const start = timers.now()
    const refused = await ran({ work: [request(200)], outcome: () => 400 }, flags, { timers })
    expect(refused.code).toBe(15)
    expect(refused.err).toContain('the session continues, because the service did not accept the interrupt')
    expect(refused.err).not.toContain('broke off')
    expect(timers.now() - start).toBeLessThan(10_000)
    const onStream: Script['onStream'] = (add) => add(request(200))
    const { exchange, counts } = service({ history: refused.events, work: [], onStream }, timers)
    const again = await run(['events', 'run', '-s', 's', '--no-stdin', ...flags], { cwd, exchange, timers })
    expect([again.code, counts.interrupts]).toEqual([15, 1])
  })

  test('events run keeps answer and exit code, with a warning, if a turn over the limit ends by itself', async () => {
    const { code, out, err, counts } = await ran({ work: [soFar, createUsageEvent(200), endTurn] }, [
      '--max-total-tokens',
      '100',
      '--last',
      '-q',
    ])
    expect({ code, out }).toEqual({ code: 0, out: 'so far\n' })
    expect(err).toContain(
      'the run used 200 tokens, and --max-total-tokens is 100; the agent has already finished',
    )
    expect(counts.interrupts).toBe(0)
  })

  test('events run interrupts a session over its limit that works again after an idle event', async () => {
    const work = [createUsageEvent(200), endTurn, running, request(50), createUsageEvent(300)]
    const { code, err, counts } = await ran({ isQueued: true, work }, ['--max-total-tokens', '100'])
    expect(code).toBe(15)
    expect(counts.interrupts).toBe(1)
    expect(err).toContain(
      'the run used 300 tokens, and --max-total-tokens is 100: parley interrupts the session',
    )
  })

  test('events run starts no command after its limit, and saves the result of an earlier one (needs sh)', async () => {
    const cwd = temporaryFolder()
    const ids = ['c1', 'c2', 'c3']
    const uses = ids.map((id) => ({ type: 'agent.custom_tool_use', id, name: 'x', input: {} }))
    const isBegun = () => existsSync(join(cwd, 'c2'))
    const asked = () => ({ usage: usage(1, isBegun() ? 900 : 1) })
    const onInterrupt = () => writeFileSync(join(cwd, 'interrupted'), '')
    const command = [
      `cd '${cwd}'`,
      'touch "$PARLEY_TOOL_USE_ID"',
      '[ "$PARLEY_TOOL_USE_ID" = c1 ] || until [ -e interrupted ]; do sleep 0.05; done',
      'echo done',
    ].join('; ')
    const file = join(cwd, 'a.ndjson')
    const flags = ['--max-cost', '1', '--audit', file, '--tool', `x=${command}`]
    const { code, counts, events } = await ran(
      { work: [...uses, waitsFor(...ids)], getSession: asked, onInterrupt },
      flags,
      // The run queries the session while the command runs.
      { timers: createFastClock() },
    )
    expect([code, counts.interrupts]).toEqual([15, 1])
    const results = events.filter(({ type }) => type === 'user.custom_tool_result')
    expect(results.map(({ custom_tool_use_id: id }) => id)).toEqual(['c1'])
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const entries = lines.map((line) => JSON.parse(line))
    const findSteps = (id: string) =>
      entries.filter(({ toolUse }) => toolUse === id).map(({ event }) => event)
    expect([findSteps('c2'), findSteps('c3')]).toEqual([['decision', 'start', 'end'], ['decision']])
  })

  test('events run does not repeat a refused reply after its limit (needs sh)', async () => {
    const flags = ['--retries', '0']
    const cwd = temporaryFolder()
    const file = join(cwd, 'a.ndjson')
    const uses = ['c1', 'c2'].map((id) => ({ type: 'agent.custom_tool_use', id, name: 'x', input: {} }))
    let isPosted = false
    let reach = () => {}
    const isReached = new Promise<void>((resolve) => {
      reach = resolve
    })
    const asked = () => {
      // The run processes the response before the next event.
      if (isPosted) setImmediate(() => setImmediate(reach))
      return { usage: usage(1, isPosted ? 900 : 1) }
    }
    const served = service({ work: [...uses, waitsFor('c1', 'c2')], getSession: asked }, createFastClock())
    const sent: string[] = []
    const exchange: Exchange = async (request) => {
      const text = Buffer.from(request.body ?? []).toString()
      if (!text.includes('"c2"')) return served.exchange(request)
      sent.push(text)
      isPosted = true
      await isReached
      return answering('{}', { status: 429, headers: { 'retry-after': '0' } })(request)
    }
    const bound = ['--max-cost', '1', '--audit', file, '--tool', 'x=echo done', ...flags]
    const argv = ['events', 'run', 'Do it', '-s', 's', '--no-stdin', ...bound]
    const { code, err } = await run(argv, { cwd, exchange, timers: served.timers })
    expect({ code, posts: sent.length }).toEqual({ code: 15, posts: 1 })
    expect(err).toContain('the run cost $9.00, and --max-cost is 1')
    const entries = readFileSync(file, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const steps = entries.filter(({ toolUse }) => toolUse === 'c2').map(({ event }) => event)
    expect(steps).toEqual(['decision', 'start', 'end', 'sent', 'refused'])
  })

  test('events run sends neither replies nor interrupts to an idle session over its limit, and can be resumed', async () => {
    const exchange = createEmulator({})
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
    const world = { exchange, cwd }
    const argv = ['events', 'run', 'use a {}\nthen use b {}', '-s', 's', '--policy', 'p.json', '--no-stdin']
    const bounds = ['--max-cost', '0.01', '--max-total-tokens', '1000000']
    const stopped = await run([...argv, ...bounds, '--errors', 'json'], world)
    expect(stopped.code).toBe(15)
    expect(stopped.requests.filter(({ method }) => method === 'POST')).toHaveLength(1)
    const { error } = JSON.parse(stopped.err)
    expect(error).toMatchObject({ kind: 'stopped', pending: [expect.stringMatching(/^toolu_/)] })
    expect(error.message).toMatch(/, and --max-cost is [^;]*; s waits for an answer: toolu_\w+: a \{\}/)
    // A new message would not reply to the waiting tool uses. The next run starts with the same limits.
    const next = ['events', 'run', '-s', 's', '--no-stdin', '--policy', 'p.json']
    expect(error).toMatchObject({
      retry: 'never',
      resume: [...next, ...bounds, '--errors', 'json', '--after', expect.any(String)],
    })
    const told = await run([...argv, ...bounds], { ...world, exchange: createEmulator({}) })
    expect(told.err).toContain(`parley ${next.join(' ')} ${bounds.join(' ')} --after `)
    const replies: string[] = []
    const codes: number[] = []
    while (codes.length < 3 && !codes.includes(0)) {
      const ended = await run([...next, ...bounds], world)
      replies.push(
        ...ended.requests.filter(({ method }) => method === 'POST').map(({ body }) => String(body)),
      )
      codes.push(ended.code)
    }
    expect(codes).toContain(0)
    expect(replies.map((text) => JSON.parse(text).events[0].type)).toEqual([
      'user.tool_confirmation',
      'user.tool_confirmation',
    ])
  })

  /** Returns the message of a signal with --errors json at one moment of a run with a limit. */
  async function signalled(moment: 'before the interrupt' | 'during the interrupt' | 'after the interrupt') {
    const clock = createClock()
    let add: (...events: Event[]) => void = () => {}
    let isStill = false
    let clean: (exit: number) => string = () => ''
    let printed = ''
    const signal = () => {
      printed ||= clean(143)
    }
    const whenShown = (text: string) => {
      if (moment === 'after the interrupt' && text.includes('late')) signal()
      if (moment !== 'before the interrupt' || !text.includes('session.usage')) return
      // The run is about to check the limit. Time stops here.
      isStill = true
      setImmediate(() => {
        signal()
        add(endTurn)
      })
    }
    const shown = new Writable({
      write(chunk, _encoding, done) {
        whenShown(String(chunk))
        done()
      },
    })
    const script: Script = {
      work: [createUsageEvent(200)],
      end: [{ ...soFar, content: 'late' }, endTurn],
      onInterrupt() {
        isStill = true
        if (moment === 'during the interrupt') signal()
      },
      onStream: (adds) => {
        add = adds
      },
    }
    const { report } = await ran(
      script,
      ['--max-total-tokens', '100', '--errors', 'json'],
      {
        timers: {
          ...clock,
          wait: (time: number, signal?: AbortSignal) =>
            isStill && printed === ''
              ? new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()))
              : clock.wait(time, signal),
        },
        stdout: { isTerminal: false, open: () => shown, writeSync: () => 0 },
        onSignal(act: typeof clean) {
          clean = act
        },
      },
      clock,
    )
    const { message, resume, retry } = JSON.parse(printed).error
    expect(report).toMatchObject({ kind: 'signal', retry, resume: resume ?? null })
    return { message, resume, retry }
  }

  test.each([
    ['before the interrupt', 'the session continues; to resume:', 'never'],
    ['during the interrupt', 'to resume:', 'look-first'],
    ['after the interrupt', 'the session was sent an interrupt; to resume:', 'never'],
  ] as const)(
    'a signal %s prints a resume command with the same limit, and that a rerun is not safe',
    async (moment, words, expected) => {
      const { message, resume, retry } = await signalled(moment)
      expect(message).toContain(words)
      expect(message).toContain('--max-total-tokens 100')
      expect({ retry, resume }).toEqual({
        retry: expected,
        resume: expect.arrayContaining(['--max-total-tokens', '100']),
      })
    },
  )
})

describe('--max-cost', () => {
  test("--max-cost queries the session's cost while the session works, and interrupts", async () => {
    const asked = (count: number) => ({ usage: usage(10, count * 100) })
    const { code, err, report, counts } = await ran({ work: [soFar, running], getSession: asked }, [
      '--max-cost',
      '2.5',
    ])
    expect(code).toBe(15)
    expect(err).toContain('the run cost $3.00, and --max-cost is 2.5')
    expect(counts).toMatchObject({ interrupts: 1, asked: 3 })
    expect(report).toMatchObject({
      cost: { amount: '300', currency: 'USD' },
      sessionCost: { amount: '300', currency: 'USD' },
    })
  })

  test.each(['0', '-1', '1e3', '.', '', '٣'])(
    'events run exits with 2 and sends nothing for --max-cost %j',
    async (amount) => {
      const { code, requests } = await run(['events', 'run', 'x', '-s', 's', `--max-cost=${amount}`])
      expect([code, requests]).toEqual([2, []])
    },
  )
})

describe('usage and cost of events run', () => {
  test('the report has the usage and cost of the run and of the session', async () => {
    const past = [{ type: 'user.message' }, running, createUsageEvent(1000, 250), endTurn]
    const { code, report } = await ran(
      { history: past, work: [soFar, createUsageEvent(1500, 437), endTurn] },
      [],
    )
    expect(code).toBe(0)
    expect(report).toMatchObject({
      usage: { inputTokens: 500, outputTokens: null, totalTokens: 500 },
      cost: { amount: '187', currency: 'USD' },
      sessionUsage: { inputTokens: 1500, totalTokens: 1500 },
      sessionCost: { amount: '437', currency: 'USD' },
    })
  })

  test('events run prints its tokens and cost in the footer on a terminal', async () => {
    const { err } = await run(['events', 'run', 'hello', '-s', 's', '--no-stdin'], {
      exchange: createEmulator({}),
      tty: ['stderr'],
    })
    expect(err).toMatch(/— \d+ tokens in · \d+ out · \$\d+\.\d\d/)
    const { err: other } = await ran({ work: [soFar, createUsageEvent(12_282, 187), endTurn] }, [], {
      tty: ['stderr'],
    })
    expect(other).toContain('— 12,282 tokens in · $1.87')
  })
})

describe('session that has used up its own budget', () => {
  const reached = { type: 'session.status_idle', stop_reason: { type: 'budget_reached' } }

  test('events run exits with 13 and prints the used-up budget, the commands that change it, and the resume command', async () => {
    const budget = { type: 'limit', max_list_cost: { amount: '6', currency: 'USD' } }
    const used = { type: 'session.usage', usage: { input_tokens: 5 }, budget }
    const { code, err } = await ran({ work: [soFar, used, reached] }, [])
    expect(code).toBe(13)
    expect(err).toContain('s stopped: budget_reached, its budget of $0.06 is used up\n')
    const raised = JSON.stringify(budget).replace('"6"', '"12"')
    expect(err).toContain(
      `  to raise it to $0.12: parley api agents /v1/sessions/s --set 'budget=${raised}'\n`,
    )
    expect(err).toContain('  to remove it: parley api agents /v1/sessions/s --set budget=null\n')
    expect(err).toContain('parley events run -s s --no-stdin')
  })

  test('events run and follow exit with 13 if the service does not send the amount of the used-up budget', async () => {
    const { code, err } = await ran({ work: [soFar, reached] }, [])
    expect(code).toBe(13)
    expect(err).toContain('s stopped: budget_reached, its budget is used up\n')
    const { exchange, timers } = service({ history: [{ type: 'user.message' }, reached], work: [] })
    const followed = await run(['events', 'follow', '-s', 's'], { exchange, timers })
    expect(followed.code).toBe(13)
    expect(followed.err).toContain('--set budget=null\n')
  })
})
