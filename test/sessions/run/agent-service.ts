import { createHash } from 'node:crypto'
import { CliError } from '../../../src/errors.ts'
import { realTimers, type Timers } from '../../../src/timers.ts'
import type { Exchange, HttpResponse } from '../../../src/wire/exchange.ts'
import { breakOff, respond } from '../../harness/responses.ts'

/** Returns the path of the lock file while a run of session `s1` writes this audit file. */
export const getLockPath = (audit: string) =>
  `${audit}.${createHash('sha256').update('s1').digest('hex').slice(0, 16)}.parley-lock`

export type Event = { id?: string; type: string } & Record<string, unknown>

/**
 * Fate of a posted request. A reset may happen before the service accepts the request (`loses`) or after it
 * (`resets`).
 */
export type Fate =
  | 'takes'
  | 'loses'
  | 'stalls'
  | 'resets'
  | 'fails'
  | 'fails late'
  | 'refuses'
  | 'limits'
  | 'cuts'
  /** The service responds with a status and an error. It accepts the events only if `isTaken` is true. */
  | { status: number; headers?: Record<string, string>; error?: string; isTaken?: boolean }

export interface AgentScript {
  /** Earlier events. */
  history?: Event[]
  /** Tool uses that the agent requests together, round by round. An idle event in a round ends the turn. */
  rounds: Event[][]
  /** The last event of the turn. By default, an idle event. */
  end?: Event
  /** Returns the fate of the next posted replies. By default the service accepts them. */
  fate?(): Fate
  /** Returns the fate of the nth posted task. */
  taskFate?(count: number): Fate
  /** Called when posted replies arrive, before their fate is applied. */
  onPost?(): void
  /**
   * Called for each list, with the number of lists since the last post. May return the number of events that
   * the list shows.
   */
  onList?(count: number): number | undefined
  /** Returns the number of events after which the next stream is cut. */
  cut?(): number
  /** Milliseconds that the list lags. */
  lag?: number
  /** If true, streams contain the events of clients. */
  echoes?: boolean
  /** Clock of the service. */
  timers?: Timers
}

export interface AgentService {
  exchange: Exchange
  readonly events: readonly Event[]
  /** The accepted replies by the id of the tool use, in order. */
  readonly taken: ReadonlyMap<string, Event[]>
  /** Number of requests that posted replies, and of requests that posted a task. */
  readonly posts: number
  readonly tasks: number
  /** Adds an event, and a reply of another client. */
  add(event: Event): void
  answer(event: Event): void
}

const idle = (type: string, ids?: string[]): Event => ({
  type: 'session.status_idle',
  stop_reason: { type, ...(ids ? { event_ids: ids } : {}) },
})

const getUseId = (event: Event) => String(event.tool_use_id ?? event.custom_tool_use_id ?? '')

/** Creates a session service whose agent requests tool uses, and records the replies. */
export function createAgentService(script: AgentScript): AgentService {
  const { wallTime: now, wait } = script.timers ?? realTimers
  const events: Event[] = []
  const times: number[] = []
  const taken = new Map<string, Event[]>()
  const wakers = new Set<() => void>()
  const waiting = new Map<string, Event>()
  let left = script.rounds
  let posts = 0
  let tasks = 0
  let lists = 0

  function add(event: Event): Event {
    const whole = { id: `e${events.length}`, processed_at: new Date(now()).toISOString(), ...event }
    events.push(whole)
    times.push(now())
    for (const wake of wakers) wake()
    return whole
  }

  function continueTurn(): void {
    const [round, ...rest] = waiting.size === 0 ? left : []
    if (round) {
      left = rest
      for (const use of round) {
        add(use)
        // A tool use that needs no reply is only added to the list.
        if (use.evaluated_permission !== 'allow' && /_use$/.test(use.type)) waiting.set(use.id ?? '', use)
        if (use.type === 'agent.tool_result') waiting.delete(getUseId(use))
      }
    }
    if (waiting.size > 0) add(idle('requires_action', [...waiting.keys()]))
    else if (round?.at(-1)?.type === 'session.status_idle') return
    else if (left.length > 0) continueTurn()
    else add(script.end ?? idle('end_turn'))
  }

  function take(given: Event[]): Event[] {
    const accepted = given.map((event) => add(event))
    for (const event of given) {
      const id = getUseId(event)
      if (id === '') continue
      taken.set(id, [...(taken.get(id) ?? []), event])
      waiting.delete(id)
    }
    const isInterrupt = given.every(({ type }) => type === 'user.interrupt')
    if (isInterrupt) waiting.clear()
    void (async () => {
      await wait(1)
      if (isInterrupt) {
        add(idle('end_turn'))
        return
      }
      add({ type: 'session.status_running' })
      await wait(1)
      for (const event of given)
        if (event.result === 'allow')
          add({ type: 'agent.tool_result', tool_use_id: getUseId(event), content: 'ok' })
      continueTurn()
    })()
    return accepted
  }

  function takePost(text: string): HttpResponse | Promise<HttpResponse> {
    const { events: given } = JSON.parse(text) as { events: Event[] }
    lists = 0
    const isTask = given.some((event) => getUseId(event) === '' && event.type !== 'user.interrupt')
    if (isTask) tasks++
    else posts++
    if (!isTask) script.onPost?.()
    const fate = (isTask ? script.taskFate?.(tasks) : script.fate?.()) ?? 'takes'
    if (typeof fate === 'object') {
      const { status, headers, error = 'x', isTaken = false } = fate
      if (isTaken) take(given)
      return respond(status, `{"type":"error","error":{"type":"${error}","message":"no"}}`, headers)
    }
    if (fate === 'limits') return respond(429, '{}', { 'retry-after': '0' })
    if (fate === 'refuses')
      return respond(400, '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}')
    if (fate === 'fails') return respond(500, '{}')
    if (fate === 'stalls') return new Promise(() => {})
    if (fate === 'loses') throw reset()
    const accepted = take(given)
    if (fate === 'resets') throw reset()
    if (fate === 'fails late') return respond(502, '<html>')
    const receipt = JSON.stringify({ data: accepted })
    return fate === 'cuts'
      ? { ...respond(200, ''), body: breakOff(receipt.slice(0, 30)) }
      : respond(200, receipt)
  }

  function takeList(url: string): HttpResponse {
    const most = script.onList?.(++lists) ?? Infinity
    const limit = now() - (script.lag ?? 0)
    const shown = events.filter((_, index) => index < most && (times[index] ?? 0) <= limit)
    if (url.includes('order=desc')) shown.reverse()
    return respond(200, JSON.stringify({ data: shown, next_page: null }))
  }

  function takeStream(): HttpResponse {
    let next = events.length
    let isClosed = false
    let wake = () => {}
    const ring = () => wake()
    wakers.add(ring)
    let room = script.cut?.() ?? Infinity
    async function* bytes(): AsyncGenerator<Uint8Array> {
      yield Buffer.from(': connected\n\n')
      while (!isClosed) {
        const event = events[next]
        if (event) next++
        if (event && (script.echoes !== false || !event.type.startsWith('user.'))) {
          if (room-- <= 0) throw reset()
          yield Buffer.from(`event: message\ndata: ${JSON.stringify(event)}\n\n`)
        }
        if (next >= events.length && !isClosed)
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    }
    const close = () => {
      isClosed = true
      wakers.delete(ring)
      wake()
    }
    return { ...respond(200, '', { 'content-type': 'text/event-stream' }), body: bytes(), close }
  }

  for (const event of script.history ?? []) {
    add(event)
    if (/_use$/.test(event.type)) waiting.set(event.id ?? '', event)
  }
  return {
    async exchange({ method, url, body }) {
      await wait(0)
      if (method === 'POST') return takePost(Buffer.from(body ?? []).toString())
      return /\/stream(\?|$)/.test(url) ? takeStream() : takeList(url)
    },
    events,
    taken,
    get posts() {
      return posts
    },
    get tasks() {
      return tasks
    },
    add,
    answer: (event) => void take([event]),
  }
}

const reset = () => new CliError('unknown', 'the connection was reset', { sent: 'unknown' })
