import { createHash } from 'node:crypto'
import { Writable } from 'node:stream'
import { realTimers, type Timers } from '../../../src/timers.ts'
import { createIdleClock } from '../../harness/clock.ts'
import type { RunOptions } from '../../harness/run.ts'
import {
  createSessionService,
  type Event,
  endTurn,
  running,
  waitsFor,
} from '../../harness/session-service.ts'

export type { Event }

/** Returns the path of the lock file while a run of session `s1` writes this audit file. */
export const getLockPath = (audit: string) =>
  `${audit}.${createHash('sha256').update('s1').digest('hex').slice(0, 16)}.parley-lock`

/** Outcomes of a post, by name: the response, and whether the service accepts the events. */
const outcomes = {
  takes: {},
  loses: { fault: 'reset' },
  stalls: { fault: 'stall' },
  resets: { fault: 'reset', isAccepted: true },
  fails: { fault: { status: 500 } },
  'fails late': { fault: { status: 502, body: '<html>' }, isAccepted: true },
  refuses: { fault: { status: 400, error: 'invalid_request_error' } },
  limits: { fault: { status: 429, headers: { 'retry-after': '0' } } },
  cuts: { response: 'cut' },
} as const

export type Outcome =
  | keyof typeof outcomes
  /** The service responds with a status and an error. It accepts the events only if `isAccepted` is true. */
  | { status: number; headers?: Record<string, string>; error?: string; isAccepted?: boolean }

export interface AgentScript {
  /** Earlier events. */
  history?: Event[]
  /** Tool uses that the agent requests together, round by round. An idle event in a round ends the turn. */
  rounds: Event[][]
  /** Last event of the turn. Default: an idle event. */
  end?: Event
  /** Returns the outcome of the next posted replies. By default the service accepts them. */
  outcome?(): Outcome
  /** Returns the outcome of the nth posted task. */
  taskOutcome?(count: number): Outcome
  /** Called when posted replies arrive, before their outcome applies. */
  onPost?(): void
  /**
   * Called for each list, with the number of lists since the last post. Returns the number of events that the
   * list shows, or `undefined` for all.
   */
  onList?(count: number): number | undefined
  /** Returns the number of events after which the next stream is cut. */
  cut?(): number
  /** Milliseconds that the list lags. */
  lag?: number
  /** If true, streams contain the events of clients. */
  echoes?: boolean
  /** Clock of the service. Default: real time. */
  timers?: Timers
}

type SessionService = ReturnType<typeof createSessionService>

export interface AgentService
  extends Pick<SessionService, 'exchange' | 'timers' | 'cwd' | 'events' | 'write' | 'lines' | 'run'> {
  /** Accepted replies in order, by the id of the tool use. */
  readonly acceptedReplies: ReadonlyMap<string, Event[]>
  /** Number of requests that posted replies. */
  readonly posts: number
  /** Number of requests that posted a task. */
  readonly tasks: number
  add(event: Event): void
  /** Adds a reply of another client, after which the agent continues. */
  answer(event: Event): void
}

const getUseId = (event: Event) => String(event.tool_use_id ?? event.custom_tool_use_id ?? '')

/** Creates a session service whose agent requests tool uses, and records the replies. */
export function createAgentService(script: AgentScript): AgentService {
  const { history = [], timers = realTimers } = script
  const acceptedReplies = new Map<string, Event[]>()
  const waiting = new Map<string, Event>()
  for (const event of history) if (/_use$/.test(event.type)) waiting.set(String(event.id), event)
  let left = script.rounds
  let posts = 0
  let tasks = 0
  let lists = 0
  let most = Infinity

  const service = createSessionService({
    timers,
    latencyMs: 0,
    history,
    defaultVisibility: { listed: script.lag ?? 0 },
    list: { pageSize: Infinity, ignores: ['types', 'limit'] },
    // Without a session resource, a run reads usage and status only from events.
    session: () => ({ data: [] }),
    lists: [
      {
        act() {
          most = script.onList?.(++lists) ?? Infinity
        },
        hides: (event) => service.events.indexOf(event) >= most,
      },
    ],
    streams: [
      {
        get cutAfter() {
          return script.cut?.() ?? Infinity
        },
        cut: 'reset',
        omits: ({ type }) => script.echoes === false && type.startsWith('user.'),
      },
    ],
    posts(given) {
      lists = 0
      const isTask = given.some((event) => getUseId(event) === '' && event.type !== 'user.interrupt')
      if (isTask) tasks++
      else posts++
      if (!isTask) script.onPost?.()
      const outcome = (isTask ? script.taskOutcome?.(tasks) : script.outcome?.()) ?? 'takes'
      const { isAccepted = false, ...fault } = typeof outcome === 'object' ? outcome : { status: 0 }
      const rule = typeof outcome === 'object' ? { fault, isAccepted } : outcomes[outcome]
      if (!('fault' in rule) || ('isAccepted' in rule && rule.isAccepted)) void act(given)
      return rule
    },
  })

  function continueTurn(): void {
    const [round, ...rest] = waiting.size === 0 ? left : []
    if (round) {
      left = rest
      for (const use of round) {
        service.add(use)
        // The agent does not wait for a tool use that needs no reply.
        if (use.evaluated_permission !== 'allow' && /_use$/.test(use.type)) waiting.set(String(use.id), use)
        if (use.type === 'agent.tool_result') waiting.delete(getUseId(use))
      }
    }
    if (waiting.size > 0) service.add(waitsFor(...waiting.keys()))
    else if (round?.at(-1)?.type === 'session.status_idle') return
    else if (left.length > 0) continueTurn()
    else service.add(script.end ?? endTurn)
  }

  async function act(given: readonly Event[]): Promise<void> {
    for (const event of given) {
      const id = getUseId(event)
      if (id === '') continue
      acceptedReplies.set(id, [...(acceptedReplies.get(id) ?? []), event])
      waiting.delete(id)
    }
    const isInterrupt = given.every(({ type }) => type === 'user.interrupt')
    if (isInterrupt) waiting.clear()
    await timers.wait(1)
    if (isInterrupt) return service.add(endTurn)
    service.add(running)
    await timers.wait(1)
    for (const event of given)
      if (event.result === 'allow')
        service.add({ type: 'agent.tool_result', tool_use_id: getUseId(event), content: 'ok' })
    continueTurn()
  }

  const { exchange, events, write, lines, run } = service
  return {
    exchange,
    timers,
    events,
    write,
    lines,
    run,
    get cwd() {
      return service.cwd
    },
    acceptedReplies,
    get posts() {
      return posts
    },
    get tasks() {
      return tasks
    },
    add: (event) => service.add(event),
    answer(event) {
      service.add(event)
      void act([event])
    },
  }
}

/** Returns a policy that decides every tool use in the same way. */
export const always = (decision: 'allow' | 'deny' | 'ask') => ({ rules: [], default: { decision } })

/** Creates an agent whose clock stops while a command runs, and functions that run `events run` on it. */
export function openAgent({ policy = always('allow'), ...script }: AgentScript & { policy?: object }) {
  const service = createAgentService({ timers: createIdleClock(), ...script })
  service.write('p.json', policy)
  return Object.assign(service, {
    /** Executes `events run` with the policy and an audit file. */
    runTask: (words = ['do it'], options?: RunOptions) =>
      service.run(
        ['events', 'run', '-s', 's1', '--policy', 'p.json', '--audit', 'a.ndjson', ...words],
        options,
      ),
    /** Removes all audit lines after the first line of this event, as if the run was killed there. */
    cutAudit(event: string) {
      const lines = service.lines('a.ndjson')
      const kept = lines.slice(0, lines.findIndex((line) => line.event === event) + 1)
      service.write('a.ndjson', kept.map((line) => `${JSON.stringify(line)}\n`).join(''))
    },
    /** Returns the lines of the audit file about tool uses. */
    audit: () => service.lines('a.ndjson').filter(({ toolUse }) => toolUse !== null),
    /** Returns the events of tasks in the audit file. */
    taskLines: () =>
      service.lines('a.ndjson').flatMap(({ task, event }) => (task === undefined ? [] : [event])),
  })
}

/** Returns run options for a person who types a text at a terminal. */
export const atTerminal = (typed: RunOptions['typed'], tty: RunOptions['tty'] = ['stderr']): RunOptions => ({
  stdinKind: 'terminal',
  typed,
  tty,
  env: { NO_COLOR: '1' },
})

/**
 * Returns run options for a run that gets a signal. `onText` is called with each text on stdout. `sendSignal`
 * acts like SIGTERM, and returns the message that parley then prints.
 */
export function createSignalOptions(onText: (text: string) => void) {
  let clean: (exit: number) => string = () => ''
  const printed = new Writable({
    write(chunk, _encoding, done) {
      onText(String(chunk))
      done()
    },
  })
  const options: RunOptions = {
    stdout: { isTerminal: false, open: () => printed, writeSync: () => 0 },
    onSignal(act) {
      clean = act
    },
  }
  return { options, sendSignal: () => clean(143) }
}
