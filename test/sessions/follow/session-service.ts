import { CliError } from '../../../src/errors.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../../../src/wire/exchange.ts'
import type { createClock } from '../../harness/clock.ts'
import { respond } from '../../harness/responses.ts'

/** An event of a session, with an id that no other has. */
export type Event = { id: string; type: string } & Record<string, unknown>

/** How one opened stream behaves; the last of a script's is never cut. */
export interface StreamScript {
  /** What it sends on opening: nothing old, everything, or as many of the last events. */
  replay: 'none' | 'all' | number
  /** After how many frames it is cut. */
  cutAfter?: number
  /** The cut ends the body, breaks it, or breaks it within a frame. */
  cut: 'end' | 'error' | 'half'
  /** Which of its frames come twice. */
  twice: readonly number[]
  name: 'message' | 'type' | 'none'
  hasComments: boolean
  hasPieces: boolean
}

/** What a session does: all of it is decided before it begins. */
export interface SessionScript {
  /** What happened before the command. */
  history: readonly Event[]
  /** How many of its last events the first list does not show, and the first stream may still bring. */
  late: number
  /** What happens from then on begins with a message that is sent; otherwise at once. */
  isSent: boolean
  /** What happens from then on, and how many milliseconds after the one before. */
  turn: readonly { event: Event; after: number }[]
  /** What happens after a second message that is sent. */
  nextTurn?: SessionScript['turn']
  /** The service's word on a message that is sent. */
  receipt: 'whole' | 'ids' | 'other ids' | 'no data' | 'empty'
  /** The list tells of `session.status_running` before the message that caused it. */
  runsFirst: boolean
  /** Streams bring `user.*` events too. */
  echoes: boolean
  /** The list is as old as so many lists before it. */
  lag: number
  list: { form: 'next_page' | 'has_more' | 'array'; size: number; obeys: boolean }
  /** Comments come for as long as there is nothing to tell. */
  keepsAlive: boolean
  streams: readonly StreamScript[]
}

export interface SessionService {
  exchange: Exchange
  /** All events in the order in which they happened. */
  readonly ledger: readonly Event[]
  /** When each event was first handed out, by id: a number that grows. */
  readonly told: ReadonlyMap<string, number>
  /** The ids that the first list showed. */
  readonly shownFirst: ReadonlySet<string>
  readonly posts: number
}

const silence = 600_000
const mostCalls = 200
const mostHours = 12

/** A session service in memory that does its worst, and is never wrong. */
export function createSessionService(
  script: SessionScript,
  clock: ReturnType<typeof createClock>,
): SessionService {
  const start = clock.now()
  const ledger: { event: Event; at: number }[] = script.history.map((event) => ({ event, at: 0 }))
  const told = new Map<string, number>()
  const shownFirst = new Set<string>()
  const seen: number[] = []
  let opened = 0
  let listed = 0
  let posts = 0
  let calls = 0

  if (!script.isSent) happen()

  /** Puts the turn into the ledger, each event with the time at which it will have happened. */
  function happen(turn = script.turn): void {
    let at = clock.now()
    for (const { event, after } of turn) {
      at += after
      ledger.push({ event, at })
    }
  }

  const happened = () => {
    const next = ledger.findIndex(({ at }) => at > clock.now())
    return next < 0 ? ledger.length : next
  }

  function tell(event: Event): Event {
    if (!told.has(event.id)) told.set(event.id, told.size)
    return event
  }

  function takePost(request: HttpRequest): HttpResponse {
    posts++
    const { events } = JSON.parse(Buffer.from(request.body ?? []).toString()) as { events: object[] }
    const more = posts > 1 ? String(posts) : ''
    const sent = { id: sentId + more, processed_at: null, ...events[0] } as unknown as Event
    const running: Event = { id: `sent${more}_running`, type: 'session.status_running' }
    for (const event of script.runsFirst ? [running, sent] : [sent]) ledger.push({ event, at: clock.now() })
    happen(posts > 1 ? (script.nextTurn ?? []) : script.turn)
    const data = {
      whole: [sent],
      ids: [{ id: sent.id, type: sent.type }],
      'other ids': [{ id: receiptId + more, type: sent.type }],
      'no data': [],
      empty: [],
    }
    return script.receipt === 'empty'
      ? respond(202, '')
      : respond(200, JSON.stringify({ data: data[script.receipt] }))
  }

  /** How much of the ledger a new list shows: never less than one before it. */
  function lookBack(): number {
    seen.push(happened())
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
      .slice(0, isFirst ? lookBack() : query.has('page') ? count : listed)
      .map(({ event }) => event)
    if (isFirst && seen.length === 1) for (const { id } of shown) shownFirst.add(id)
    const types = query.getAll('types[]')
    const wanted = obeys && types.length > 0 ? shown.filter(({ type }) => types.includes(type)) : shown
    if (obeys && query.get('order') === 'desc') wanted.reverse()
    const after = wanted.findIndex(({ id }) => id === query.get('after_id')) + 1
    const begin = query.has('page') ? (from ?? 0) : after
    const end =
      form === 'array'
        ? wanted.length
        : begin + Math.min(size, obeys ? Number(query.get('limit') ?? size) : size)
    const data = wanted.slice(begin, end).map(tell)
    const isMore = end < wanted.length
    if (form === 'array') return respond(200, JSON.stringify(data))
    return respond(
      200,
      JSON.stringify(
        form === 'has_more'
          ? { data, has_more: isMore, ...(isMore ? { last_id: data.at(-1)?.id } : {}) }
          : { data, next_page: isMore ? `${isFirst ? shown.length : count}-${end}` : null },
      ),
    )
  }

  /** Where in the ledger a stream begins. */
  function beginningOf({ replay }: StreamScript, isFirst: boolean): number {
    if (replay === 'all') return 0
    if (replay !== 'none') return Math.max(0, happened() - replay)
    // What the first list was too early for happens just now.
    return isFirst && posts === 0
      ? Math.min(happened(), script.history.length - (script.late >> 1))
      : happened()
  }

  function takeStream(): HttpResponse {
    const stream = script.streams[Math.min(opened, script.streams.length - 1)] as StreamScript
    const isLast = opened >= script.streams.length - 1
    let next = beginningOf(stream, opened++ === 0)
    let frames = 0
    let isClosed = false
    let close = () => {}
    const closed = new Promise<void>((resolve) => {
      close = () => {
        isClosed = true
        resolve()
      }
    })

    /** Waits for the next event that this stream brings; without one it waits for what is never to come. */
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
          const text = framesOf(tell(coming.event), stream).join('')
          yield Buffer.from(stream.twice.includes(frames) ? text + text : text)
          frames++
          continue
        }
        const until = Math.min(
          coming?.at ?? Infinity,
          script.keepsAlive ? clock.now() + 15_000 : quietSince + silence,
        )
        await Promise.race([clock.wait(until - clock.now()), closed])
        if (clock.now() - start > mostHours * 3_600_000) throw new Error('the stream is read for ever')
        if (script.keepsAlive) yield Buffer.from(':keepalive\n\n')
        else if (clock.now() - quietSince >= silence) {
          throw new CliError('response', 'no byte came for 600 s', { sent: 'yes' })
        }
      }
    }

    return { ...respond(200, ''), headers: { 'content-type': 'text/event-stream' }, body: bytes(), close }
  }

  async function exchange(request: HttpRequest): Promise<HttpResponse> {
    const { pathname, searchParams } = new URL(request.url)
    if (!/(^|&)(page|after_id)=/.test(searchParams.toString()) && ++calls > mostCalls) {
      throw new Error('the service is asked for ever')
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
    told,
    shownFirst,
    get posts() {
      return posts
    },
  }
}

/** The id in a receipt whose ids are not those of the stored events. */
export const receiptId = 'receipt_1'

/** The id of a sent message. */
export const sentId = 'sent_1'

function framesOf(event: Event, { name, hasComments, hasPieces }: StreamScript): string[] {
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
