import { CliError } from '../../../src/errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../../../src/wire/exchange.ts'
import type { createClock } from '../../harness/clock.ts'
import { createResponse } from '../../harness/responses.ts'

export type Event = { id: string; type: string } & Record<string, unknown>

/** The last stream of a session is never cut. */
export interface GeneratedStream {
  /** The events that the stream sends first: none, all, or this number of the newest events. */
  replay: 'none' | 'all' | number
  /** Number of frames after which the stream is cut. */
  cutAfter?: number
  /** A cut ends the body, breaks it, or breaks it within a frame. */
  cut: 'end' | 'error' | 'half'
  /** Indexes of the frames that are sent twice. */
  twice: readonly number[]
  /** Value of the `event:` line of each frame. */
  name: 'message' | 'type' | 'none'
  hasComments: boolean
  hasPieces: boolean
}

export interface GeneratedSession {
  /** Events before parley starts. */
  history: readonly Event[]
  /** Number of the newest events that the first list omits and that the first stream may deliver. */
  late: number
  /** The turn starts when parley sends a message; otherwise at once. */
  isSent: boolean
  /** The events of the turn, each with its delay in milliseconds after the previous one. */
  turn: readonly { event: Event; after: number }[]
  /** Form of the response to a sent message. */
  receipt: 'whole' | 'ids' | 'other ids' | 'no data' | 'empty'
  /** The list shows `session.status_running` before the message that caused it. */
  runsFirst: boolean
  /** Streams also deliver `user.*` events. */
  echoes: boolean
  /** Number of list requests by which the content of a list lags. */
  lag: number
  list: { form: 'next_page' | 'has_more' | 'array'; size: number; obeys: boolean }
  /** A silent stream sends comments. */
  keepsAlive: boolean
  streams: readonly GeneratedStream[]
}

export interface ScenarioService {
  exchange: Exchange
  /** All events in order. */
  readonly ledger: readonly Event[]
  /** For each id, the position of its event in the order of first delivery. */
  readonly delivered: ReadonlyMap<string, number>
  readonly firstListIds: ReadonlySet<string>
  readonly posts: number
}

const silenceMs = 600_000
const maxCalls = 200
const maxHours = 12

/** Creates a session service that lags, omits, repeats and cuts as much as the specification allows. */
export function createScenarioService(
  script: GeneratedSession,
  clock: ReturnType<typeof createClock>,
): ScenarioService {
  const start = clock.now()
  const ledger: { event: Event; at: number }[] = script.history.map((event) => ({ event, at: 0 }))
  const delivered = new Map<string, number>()
  const firstListIds = new Set<string>()
  const seen: number[] = []
  let opened = 0
  let listed = 0
  let posts = 0
  let calls = 0

  if (!script.isSent) addTurn()

  function addTurn(): void {
    let at = clock.now()
    for (const { event, after } of script.turn) {
      at += after
      ledger.push({ event, at })
    }
  }

  const countPastEvents = () => {
    const next = ledger.findIndex(({ at }) => at > clock.now())
    return next < 0 ? ledger.length : next
  }

  function deliver(event: Event): Event {
    if (!delivered.has(event.id)) delivered.set(event.id, delivered.size)
    return event
  }

  function takePost(request: HttpRequest): HttpResponse {
    posts++
    const { events } = JSON.parse(Buffer.from(request.body ?? []).toString()) as { events: object[] }
    const sent = { id: sentId, processed_at: null, ...events[0] } as unknown as Event
    const running: Event = { id: 'sent_running', type: 'session.status_running' }
    for (const event of script.runsFirst ? [running, sent] : [sent]) ledger.push({ event, at: clock.now() })
    addTurn()
    const data = {
      whole: [sent],
      ids: [{ id: sent.id, type: sent.type }],
      'other ids': [{ id: 'receipt_1', type: sent.type }],
      'no data': [],
      empty: [],
    }
    return script.receipt === 'empty'
      ? createResponse(202, '')
      : createResponse(200, JSON.stringify({ data: data[script.receipt] }))
  }

  /** Returns the number of events in a new list, which is never less than in an earlier list. */
  function countListedEvents(): number {
    seen.push(countPastEvents())
    const old = script.history.length - script.late
    const count = seen.length - 1 < script.lag ? old : (seen[seen.length - 1 - script.lag] ?? old)
    listed = seen.length === 1 ? old : Math.max(listed, count)
    return listed
  }

  function takeList(query: URLSearchParams): HttpResponse {
    const { form, size, obeys } = script.list
    const [count, from] = (query.get('page') ?? '').split('-').map(Number)
    const isFirst = !query.has('page') && !query.has('after_id')
    const shown = ledger
      .slice(0, isFirst ? countListedEvents() : query.has('page') ? count : listed)
      .map(({ event }) => event)
    if (isFirst && seen.length === 1) for (const { id } of shown) firstListIds.add(id)
    const types = query.getAll('types[]')
    const wanted = obeys && types.length > 0 ? shown.filter(({ type }) => types.includes(type)) : shown
    if (obeys && query.get('order') === 'desc') wanted.reverse()
    const after = wanted.findIndex(({ id }) => id === query.get('after_id')) + 1
    const begin = query.has('page') ? (from ?? 0) : after
    const end =
      form === 'array'
        ? wanted.length
        : begin + Math.min(size, obeys ? Number(query.get('limit') ?? size) : size)
    const data = wanted.slice(begin, end).map(deliver)
    const isMore = end < wanted.length
    if (form === 'array') return createResponse(200, JSON.stringify(data))
    return createResponse(
      200,
      JSON.stringify(
        form === 'has_more'
          ? { data, has_more: isMore, ...(isMore ? { last_id: data.at(-1)?.id } : {}) }
          : { data, next_page: isMore ? `${isFirst ? shown.length : count}-${end}` : null },
      ),
    )
  }

  /** Returns the index in the ledger at which a stream starts. */
  function getStreamStart({ replay }: GeneratedStream, isFirst: boolean): number {
    if (replay === 'all') return 0
    if (replay !== 'none') return Math.max(0, countPastEvents() - replay)
    // The first stream delivers half of the events that the first list omitted.
    return isFirst && posts === 0
      ? Math.min(countPastEvents(), script.history.length - (script.late >> 1))
      : countPastEvents()
  }

  function takeStream(): HttpResponse {
    const stream = script.streams[Math.min(opened, script.streams.length - 1)] as GeneratedStream
    const isLast = opened >= script.streams.length - 1
    let next = getStreamStart(stream, opened++ === 0)
    let frames = 0
    let isClosed = false
    let close = () => {}
    const closed = new Promise<void>((resolve) => {
      close = () => {
        isClosed = true
        resolve()
      }
    })

    /** Waits for the next event of this stream, or until the stream is closed. */
    async function* bytes(): AsyncGenerator<Uint8Array> {
      if (stream.hasComments) yield Buffer.from(': connected\n\n')
      let quietSince = clock.now()
      while (!isClosed) {
        if (!isLast && stream.cutAfter !== undefined && frames >= stream.cutAfter) {
          if (stream.cut === 'half') yield Buffer.from('event: agent.message\ndata: {"id":"half')
          if (stream.cut === 'end') return
          throw new CliError('response', 'the connection broke off', { sent: 'yes' })
        }
        const coming = ledger[next]
        if (coming && coming.at <= clock.now()) {
          next++
          quietSince = clock.now()
          if (!script.echoes && coming.event.type.startsWith('user.')) continue
          const text = createFrames(deliver(coming.event), stream).join('')
          yield Buffer.from(stream.twice.includes(frames) ? text + text : text)
          frames++
          continue
        }
        const until = Math.min(
          coming?.at ?? Infinity,
          script.keepsAlive ? clock.now() + 15_000 : quietSince + silenceMs,
        )
        await Promise.race([clock.wait(until - clock.now()), closed])
        if (clock.now() - start > maxHours * 3_600_000) throw new Error('the stream is read endlessly')
        if (script.keepsAlive) yield Buffer.from(':keepalive\n\n')
        else if (clock.now() - quietSince >= silenceMs) {
          throw new CliError('response', 'no byte arrived for 600 s', { sent: 'yes' })
        }
      }
    }

    return {
      ...createResponse(200, ''),
      headers: { 'content-type': 'text/event-stream' },
      body: bytes(),
      close,
    }
  }

  async function exchange(request: HttpRequest): Promise<HttpResponse> {
    const { pathname, searchParams } = new URL(request.url)
    if (!/(^|&)(page|after_id)=/.test(searchParams.toString()) && ++calls > maxCalls) {
      throw new Error('the service is queried endlessly')
    }
    await clock.wait(10)
    if (request.method === 'POST') return takePost(request)
    return pathname.endsWith('/stream') ? takeStream() : takeList(searchParams)
  }

  return {
    exchange,
    get ledger() {
      return ledger.map(({ event }) => event)
    },
    delivered,
    firstListIds,
    get posts() {
      return posts
    },
  }
}

/** Id of a sent message. */
export const sentId = 'sent_1'

function createFrames(event: Event, { name, hasComments, hasPieces }: GeneratedStream): string[] {
  const frame = (value: { type: string }) => {
    const line = name === 'none' ? '' : `event: ${name === 'message' ? name : value.type}\n`
    return `${hasComments ? ':keepalive\n\n' : ''}${line}data: ${JSON.stringify(value)}\n\n`
  }
  if (!hasPieces || event.type !== 'agent.message') return [frame(event)]
  const { id, type } = event
  const piece = (text: string) => ({
    type: 'event_delta',
    event_id: id,
    delta: { type: 'content_delta', index: 0, content: { type: 'text', text } },
  })
  const pieces = [{ type: 'event_start', event: { id, type } }, piece(id.slice(0, 2)), piece(id.slice(2))]
  return [...pieces, event].map(frame)
}
