import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Deadline } from '../../src/deadline.ts'
import { CliError } from '../../src/errors.ts'
import type { Timers } from '../../src/timers.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../../src/wire/exchange.ts'
import { createIdleClock } from './clock.ts'
import { type Event, endTurn, running, waitsFor } from './events.ts'
import { createCutBody } from './responses.ts'
import { createInterrupt, createResponse, parseLines, type RunOptions, run, temporaryFolder } from './run.ts'
import { createStdout } from './stdout.ts'

/** Creates a signal that a test triggers by hand. */
export function createSignal() {
  let resolve = () => {}
  const triggered = new Promise<void>((done) => {
    resolve = done
  })
  const signal = {
    isTriggered: false,
    triggered,
    trigger() {
      signal.isTriggered = true
      resolve()
    },
  }
  return signal
}
type Signal = ReturnType<typeof createSignal>

/** Time of an action: milliseconds after an event happens, or a signal that the test triggers. */
type When = number | 'never' | Signal

/** Times at which the service shows an event. */
interface Visibility {
  /** Time from which lists contain the event. Default: at once. */
  listed?: When
  /** Time at which open streams deliver the event. Default: at once. */
  streamed?: When
  /** Time until which `processed_at` is null. Default: never null. */
  processed?: When
}

/** Event of a script, or an event with the times at which the service shows it (`shown`). */
type Step = Event | ShownEvent
export type ScriptEvents = readonly Step[]
interface ShownEvent extends Visibility {
  event: Event
  after?: number | Signal
}

/** Returns an event with the time at which it happens, and the times at which lists and streams show it. */
export const shown = (event: Event, how: Omit<ShownEvent, 'event'>): ShownEvent => ({ event, ...how })

/**
 * Failure of a request. After `reset`, the client cannot detect whether the service received the request.
 * After `unreachable`, the service has not received it. `stall` never answers. `cut` breaks off a body.
 */
export type RequestFault =
  | 'unreachable'
  | 'reset'
  | 'stall'
  | 'cut'
  | { status: number; error?: string; headers?: Record<string, string>; body?: string }

/** Reaction of the service to some requests. The first rule that matches a request applies. */
interface Rule {
  /** Number of the request among all requests of its kind, from 1. Default: every request. */
  nth?: number
  /** Further condition. Default: the rule always applies. */
  when?(): boolean
  /** Called when the request arrives. */
  act?(): void
  /** Events of other clients or of the agent that happen when the request arrives. */
  before?: ScriptEvents
  fault?: RequestFault
}

export interface PostRule extends Rule {
  /** Type of the first posted event. `nth` counts the requests that start with this type. */
  type?: string
  /** The service accepts the events although the request fails. */
  isAccepted?: boolean
  /**
   * Content of the response, or `cut` for a part of it. Default: the posted events as the service shows them.
   */
  response?: 'events' | 'other ids' | 'no data' | 'empty' | 'cut'
  /** Time at which the service shows the posted events. */
  posted?: Visibility
  /** Events that follow the posted events. Default time: a millisecond after the event before. */
  next?: ScriptEvents | ((posted: readonly Event[]) => ScriptEvents)
}

interface ListRule extends Rule {
  /** Number of the page to which the rule applies, from 1. Default: 1. */
  page?: number
  /** Content of the list instead of the events of the session. */
  events?: readonly Event[]
  hides?(event: Event): boolean
}

interface StreamRule extends Rule {
  /**
   * Events that the stream delivers first. If set, the stream is cut right after event number `cutAfter`. If
   * omitted, the cut waits until a further event is due.
   */
  events?: readonly Event[]
  /** Earlier events with which the stream starts: all, or this number of the last events. Default: none. */
  replay?: 'all' | number
  omits?(event: Event): boolean
  repeats?(event: Event): boolean
  /** Number of events after which the stream is cut. */
  cutAfter?: number
  /** Kind of the cut: end of the body (default), reset, or half of an event and a reset. */
  cut?: 'end' | 'reset' | 'half'
  /** Formats an event for the stream. Default: as one server-sent event. */
  frame?(event: Event): string
}

/** Everything that happens in a session, and the part of it that the service shows. */
export interface SessionScript {
  /** Clock of the run. The default clock stops while a command runs, so no command reaches its time limit. */
  timers?: Timers
  /** Events before the command. */
  history?: ScriptEvents
  /** Rules for posted events, or a function that returns the rule for the events of one request. */
  posts?: readonly PostRule[] | ((posted: readonly Event[]) => PostRule)
  /** Rules for lists. `nth` counts lists, not their pages. */
  lists?: readonly ListRule[]
  streams?: readonly StreamRule[]
  /** Default visibility of events. The history is listed at once. */
  defaultVisibility?: Visibility
  /** True if events have no ids. */
  hasNoIds?: boolean
  list?: {
    /** Form of a page. Default: `next_page`. An `unmarked` page does not show whether more events follow. */
    form?: 'next_page' | 'has_more' | 'array' | 'unmarked'
    pageSize?: number
    /** Number of events that a page repeats from the page before. */
    overlap?: number
    ignores?: readonly ('order' | 'types' | 'limit')[]
  }
  /** Latency of each request, in milliseconds. Default: 10. */
  latencyMs?: number
  /** Answer to `GET /v1/sessions/{id}`. Default: the session's id and status. */
  session?(): object | RequestFault
}

interface RecordedRequest {
  kind: 'post' | 'list' | 'stream' | 'session'
  /** Milliseconds since the service was created, by its clock. */
  at: number
  query: URLSearchParams
  events: Event[]
}

/** Number of requests after which a run fails, because it seems to send requests without end. */
const maxRequests = 2000

interface HistoryEntry extends Visibility {
  event: Event
  at: number
}

/**
 * Creates a session service in memory, and a folder with the policy `allow.json` in which parley runs. Its
 * clock advances only while all code waits, so a delay of seconds takes no real time. The history is always
 * complete and in order, whatever lists and streams show.
 */
export function createSessionService(script: SessionScript) {
  const { timers = createIdleClock(), latencyMs = 10 } = script
  let folder: string | undefined
  function getFolder(): string {
    folder ??= temporaryFolder({ 'allow.json': JSON.stringify(always('allow')) })
    return folder
  }
  const write = (name: string, value: unknown) =>
    writeFileSync(join(getFolder(), name), typeof value === 'string' ? value : JSON.stringify(value))
  const lines = (name: string): Record<string, unknown>[] =>
    parseLines(readFileSync(join(getFolder(), name), 'utf8'))
  const start = timers.now()
  const history: HistoryEntry[] = []
  const requests: RecordedRequest[] = []
  const [events, posts]: [Event[], Event[][]] = [[], []]
  const counts = new Map<string, number>()
  const streams = new Set<(entry: HistoryEntry) => void>()
  /** Next pages by their cursor. A page starts at the event of `events` with the index `from`. */
  const pages = new Map<string, { events: Event[]; from: number; number: number }>()

  function isDue({ at }: HistoryEntry, when: When = 0): boolean {
    if (when === 'never') return false
    return typeof when === 'number' ? timers.now() >= at + when : when.isTriggered
  }

  /** Returns an event as the service shows it at this time. */
  function show(entry: HistoryEntry): Event {
    const { event, processed } = entry
    return isDue(entry, processed) ? event : { ...event, processed_at: null }
  }

  function record(event: Event, how: Visibility): HistoryEntry {
    const id = script.hasNoIds ? undefined : `e${history.length + 1}`
    const whole = { id, processed_at: new Date(timers.wallTime()).toISOString(), ...event }
    const entry = { ...script.defaultVisibility, ...how, event: whole, at: timers.now() }
    history.push(entry)
    events.push(whole)
    for (const offer of streams) offer(entry)
    return entry
  }

  const toShown = (step: Step) => ('event' in step ? (step as ShownEvent) : { event: step as Event })

  const add = (steps: ScriptEvents, how: Visibility = {}) =>
    steps.map((step) => {
      const { event, after: _, ...own } = toShown(step)
      return record(event, { ...how, ...own })
    })

  async function play(steps: ScriptEvents): Promise<void> {
    for (const step of steps) {
      const { after = 1 } = toShown(step) as ShownEvent
      await (typeof after === 'number' ? timers.wait(after) : after.triggered)
      add([step])
    }
  }

  const count = (kind: string) => {
    counts.set(kind, (counts.get(kind) ?? 0) + 1)
    return counts.get(kind) as number
  }

  /** Returns the rule for a request, calls its `act` and adds its events. */
  function applyRule<R extends Rule>(rules: readonly R[] = [], getNumber: (rule: R) => number): Partial<R> {
    const rule = rules.find((each) => {
      const nth = getNumber(each)
      return nth > 0 && (each.nth ?? nth) === nth && (each.when?.() ?? true)
    })
    rule?.act?.()
    add(rule?.before ?? [])
    return rule ?? {}
  }

  function answerPost(events: Event[]): HttpResponse | Promise<HttpResponse> {
    const nth = count('post')
    const nthOfType = count(`post ${events[0]?.type}`)
    const { posts: rules } = script
    const rule = applyRule<PostRule>(typeof rules === 'function' ? [rules(events)] : rules, ({ type }) =>
      type === undefined ? nth : type === events[0]?.type ? nthOfType : 0,
    )
    const { fault, isAccepted = fault === undefined, response = 'events', posted, next = [] } = rule
    let accepted: Event[] = []
    if (isAccepted) {
      accepted = add(events, posted).map(show)
      void play(typeof next === 'function' ? next(events) : next)
    }
    if (fault) return fail(fault)
    const named = accepted.map((event, index) => ({ ...event, id: `receipt_${nth}_${index}` }))
    const text = JSON.stringify({ data: response === 'other ids' ? named : accepted })
    if (response === 'cut') return { ...createResponse(''), body: createCutBody(text.slice(0, 30)) }
    if (response === 'empty') return createResponse('', { status: 202 })
    return createResponse(response === 'no data' ? '{"data":[]}' : text)
  }

  function answerList(query: URLSearchParams): HttpResponse | Promise<HttpResponse> {
    const { form = 'next_page', pageSize = 100, overlap = 0, ignores = [] } = script.list ?? {}
    const cursor = query.get('page') ?? query.get('after_id')
    const isFirst = cursor === null
    const nth = isFirst ? count('list') : (counts.get('list') ?? 0)
    const asked = pages.get(cursor ?? '') ?? { events: [], from: 0, number: 1 }
    const rule = applyRule<ListRule>(script.lists, ({ page = 1 }) => (page === asked.number ? nth : 0))
    if (rule.fault) return fail(rule.fault)
    let { events } = asked
    if (isFirst) {
      const listed = history.filter((each) => isDue(each, each.listed)).map(show)
      events = (rule.events ?? listed).filter((event) => !rule.hides?.(event))
      const types = ignores.includes('types') ? [] : query.getAll('types[]')
      if (types.length > 0) events = events.filter(({ type }) => types.includes(type))
      if (!ignores.includes('order') && query.get('order') === 'desc') events.reverse()
    }
    if (form === 'array') return createResponse(JSON.stringify(events))
    const usualSize = form === 'unmarked' ? 100 : pageSize
    const limit = ignores.includes('limit') ? pageSize : Number(query.get('limit') ?? usualSize)
    const end = asked.from + Math.min(pageSize, limit)
    const data = events.slice(asked.from, end)
    const isMore = end < events.length
    const following = form === 'has_more' ? String(data.at(-1)?.id) : `p${pages.size + 1}`
    if (isMore) pages.set(following, { events, from: end - overlap, number: asked.number + 1 })
    const none = form === 'has_more' ? { has_more: false } : { next_page: null }
    const more = form === 'has_more' ? { has_more: true, last_id: following } : { next_page: following }
    return createResponse(JSON.stringify({ data, ...(form === 'unmarked' ? {} : isMore ? more : none) }))
  }

  function answerStream(): HttpResponse | Promise<HttpResponse> {
    const nth = count('stream')
    const rule = applyRule<StreamRule>(script.streams, () => nth)
    if (rule.fault) return fail(rule.fault)
    const { cutAfter = Infinity, cut = 'end', frame = createFrame, replay = 0 } = rule
    const queue: HistoryEntry[] = (rule.events ?? []).map((event) => ({ event, at: timers.now() }))
    queue.push(...history.slice(replay === 'all' ? 0 : Math.max(0, history.length - replay)))
    let isClosed = false
    let wake = () => {}
    const push = (entry: HistoryEntry) => {
      queue.push(entry)
      wake()
    }
    const offer = (entry: HistoryEntry) => {
      const { streamed = 0 } = entry
      if (streamed === 'never') return
      const time = typeof streamed === 'number' ? timers.wait(streamed) : streamed.triggered
      if (streamed === 0) push(entry)
      else void time.then(() => push(entry))
    }
    streams.add(offer)
    const close = () => {
      isClosed = true
      streams.delete(offer)
      wake()
    }
    async function* bytes(): AsyncGenerator<Uint8Array> {
      let delivered = 0
      const isOver = () => rule.events !== undefined && delivered >= cutAfter
      yield Buffer.from(': connected\n\n')
      while (!isClosed) {
        const entry = queue.shift()
        const isOmitted = entry !== undefined && rule.omits?.(entry.event) === true
        const text = entry && !isOmitted ? frame(show(entry)) : ''
        if (isOver() || (text !== '' && delivered >= cutAfter)) {
          close()
          if (cut === 'half') yield Buffer.from(text.slice(0, text.length >> 1))
          if (cut === 'end') return
          throw new CliError('response', 'the connection broke off', { sent: 'yes' })
        }
        if (entry && text !== '') {
          delivered++
          yield Buffer.from(rule.repeats?.(entry.event) ? text + text : text)
        }
        if (queue.length === 0 && !isClosed && !isOver())
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    }
    const head = createResponse('', { headers: { 'content-type': 'text/event-stream' } })
    return { ...head, body: bytes(), close }
  }

  function answerSession(id: string): HttpResponse | Promise<HttpResponse> {
    const last = history.findLast(({ event }) => /^session\.(status_|deleted)|^user\./.test(event.type))
    const status = last?.event.type.replace('session.status_', '') ?? 'idle'
    const isOver = status === 'idle' || status === 'terminated'
    const session = script.session?.() ?? { id, type: 'session', status: isOver ? status : 'running' }
    return isFault(session) ? fail(session) : createResponse(JSON.stringify(session))
  }

  const exchange: Exchange = async (request, onSent) => {
    const { pathname, searchParams: query } = new URL(request.url, 'https://agents.test')
    const posted = readPosted(request)
    const [, id = '', rest = ''] = /\/v1\/sessions\/([^/]+)(.*)$/.exec(pathname) ?? []
    const kinds = { '/events': 'list', '/events/stream': 'stream' } as const
    const kind = request.method === 'POST' ? 'post' : (kinds[rest as keyof typeof kinds] ?? 'session')
    requests.push({ kind, at: timers.now() - start, query, events: posted })
    if (kind === 'post') posts.push(posted)
    if (requests.length > maxRequests) throw new Error('the program queries the service without end')
    onSent?.()
    await timers.wait(latencyMs)
    const answer = async () => {
      if (kind === 'post') return answerPost(posted)
      if (kind === 'list') return answerList(query)
      return kind === 'stream' ? answerStream() : answerSession(id)
    }
    return request.deadline?.race(answer(), createDeadlineFailure) ?? answer()
  }

  // The history is older than the run, so lists contain it at once.
  add(script.history ?? [], { listed: 0 })

  return {
    timers,
    get cwd() {
      return getFolder()
    },
    exchange,
    requests,
    /** All events in order. */
    events,
    /** Posted events, by request. */
    posts,
    /** Adds events now. Tests use it for events of another client. */
    add: (...steps: Step[]) => void add(steps),
    /** Writes a file into the folder of the run. A value that is not a text becomes JSON. */
    write,
    /** Reads a file of JSON lines from the folder of the run. */
    lines,
    report: () => lines('report.json')[0] as Record<string, unknown>,
    /** Returns the events about a tool use in the file `audit.ndjson`. */
    auditOf: (id: string) =>
      lines('audit.ndjson').flatMap((each) => (each.toolUse === id ? [each.event] : [])),
    /** Returns the posted events of each request except the first, which posts the task. */
    replies: () => posts.slice(1),
    /** Runs parley on the session. All runs use the same folder, so a later run resumes. */
    run: (argv: string[], options: RunOptions = {}) =>
      run(argv, {
        cwd: getFolder(),
        timers,
        stdinKind: 'none',
        exchange,
        ...options,
        env: { PARLEY_SESSION: 's1', ...options.env },
      }),
  }
}

const isFault = (value: object | RequestFault): value is RequestFault =>
  typeof value === 'string' || typeof (value as { status?: unknown }).status === 'number'

const createFrame = (event: Event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

function readPosted({ body }: HttpRequest): Event[] {
  const text = Buffer.from(body ?? []).toString()
  return text === '' ? [] : (JSON.parse(text) as { events: Event[] }).events
}

function fail(fault: RequestFault): HttpResponse | Promise<HttpResponse> {
  if (fault === 'unreachable') throw new CliError('not-sent', 'the connection was refused', { sent: 'no' })
  if (fault === 'reset') throw new CliError('unknown', 'the connection was reset', { sent: 'unknown' })
  if (fault === 'stall') return new Promise(() => {})
  if (fault === 'cut') return { ...createResponse(''), body: createCutBody('{"data":[') }
  const { status, error: type = 'api_error', headers, body } = fault
  const standard = JSON.stringify({ type: 'error', error: { type, message: 'no' } })
  return createResponse(body ?? standard, { status, headers })
}

/** Returns the failure of a request that was sent and whose deadline passed before the response. */
function createDeadlineFailure({ limitText }: Deadline): CliError {
  const details = limitText === undefined ? { deadline: true } : {}
  return new CliError('unknown', limitText ?? 'the deadline passed', details)
}

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
  /** Policy of the file `p.json`. Default: allows everything. */
  policy?: object
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
  /** Clock of the service and its runs. The default clock stops while a command runs. */
  timers?: Timers
}

const getUseId = (event: Event) => String(event.tool_use_id ?? event.custom_tool_use_id ?? '')

/** Creates a session service whose agent requests tool uses in rounds, and records the replies. */
export function openAgent(script: AgentScript) {
  const { policy = always('allow'), history = [], timers = createIdleClock() } = script
  const acceptedReplies = new Map<string, Event[]>()
  const waiting = new Map<string, Event>()
  for (const event of history) if (/_use$/.test(event.type)) waiting.set(String(event.id), event)
  let left = script.rounds
  let posts = 0
  let tasks = 0
  let lists = 0
  let most = Infinity
  const countList = () => {
    most = script.onList?.(++lists) ?? Infinity
  }

  const service = createSessionService({
    timers,
    latencyMs: 0,
    history,
    defaultVisibility: { listed: script.lag ?? 0 },
    list: { pageSize: Infinity, ignores: ['types', 'limit'] },
    // Without a session resource, a run reads usage and status only from events.
    session: () => ({ data: [] }),
    lists: [{ act: countList, hides: (event) => service.events.indexOf(event) >= most }],
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
      const { isAccepted = false } = typeof outcome === 'object' ? outcome : {}
      const rule: PostRule = typeof outcome === 'object' ? { fault: outcome, isAccepted } : outcomes[outcome]
      if (rule.fault === undefined || rule.isAccepted) void act(given)
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
    if (service.events.some(({ type }) => type === 'session.status_terminated')) return
    if (isInterrupt) return service.add(endTurn)
    service.add(running)
    await timers.wait(1)
    const allowed = given.filter(({ result }) => result === 'allow').map(getUseId)
    for (const id of allowed) service.add({ type: 'agent.tool_result', tool_use_id: id, content: 'ok' })
    continueTurn()
  }

  service.write('p.json', policy)
  return {
    ...service,
    /** Accepted replies in order, by the id of the tool use. */
    acceptedReplies: acceptedReplies as ReadonlyMap<string, Event[]>,
    /** Number of requests that posted replies. */
    get posts() {
      return posts
    },
    /** Number of requests that posted a task. */
    get tasks() {
      return tasks
    },
    /** Adds a reply of another client, after which the agent continues. */
    answer(event: Event) {
      service.add(event)
      void act([event])
    },
    /** Executes `events run` with the policy and an audit file. */
    runTask: (words = ['do it'], options?: RunOptions) =>
      service.run(['events', 'run', '--policy', 'p.json', '--audit', 'a.ndjson', ...words], options),
    /** Removes all audit lines after the first line of this event, as if the run was killed there. */
    cutAudit(event: string) {
      const lines = service.lines('a.ndjson')
      const kept = lines.slice(0, lines.findIndex((line) => line.event === event) + 1)
      service.write('a.ndjson', kept.map((line) => `${JSON.stringify(line)}\n`).join(''))
    },
    /** Returns the lines of the audit file about tool uses. */
    audit: () => service.lines('a.ndjson').filter(({ toolUse }) => toolUse !== null),
    /** Returns the events of tasks in the audit file. */
    taskLines: () => service.lines('a.ndjson').flatMap(({ task, event }) => (task ? [event] : [])),
  }
}
export type Agent = ReturnType<typeof openAgent>

/** Returns a policy that decides every tool use in the same way. */
export const always = (decision: 'allow' | 'deny' | 'ask') => ({ rules: [], default: { decision } })

/** Returns run options for a person who types a text at a terminal. */
export const atTerminal = (typed: RunOptions['typed'], tty: RunOptions['tty'] = ['stderr']): RunOptions => ({
  stdinKind: 'terminal',
  typed,
  tty,
  env: { NO_COLOR: '1' },
})

/** Types a text at a terminal, then nothing more. The input does not end. */
export async function* typeAndWait(text: string) {
  yield text
  await new Promise(() => {})
}

/**
 * Returns run options for a run that gets a signal. `onText` is called with each text on stdout. `sendSignal`
 * acts like SIGTERM, and returns the message that parley then prints.
 */
export function createSignalOptions(onText: (text: string) => void) {
  const { onSignal, interrupt } = createInterrupt()
  const stdout = createStdout((chunk, done) => {
    onText(String(chunk))
    done()
  })
  return { options: { stdout, onSignal } satisfies RunOptions, sendSignal: () => interrupt(143) }
}
