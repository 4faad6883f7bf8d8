import { on } from 'node:events'
import type { SendEventsBody } from '../../wire/sessions/send-events.ts'
import type { CreateSessionBody } from '../../wire/sessions/session-requests.ts'
import { encodeSseEvent } from '../../wire/sse.ts'
import { type EmulatedResponse, errorResponse, jsonResponse, newId } from '../response.ts'
import { AgentSession, type StoredSession } from './agent.ts'
import { PlayedSession } from './played.ts'
import { isFromClient, type ListedEvent, type Session } from './session.ts'

/** Storage by which processes share sessions. */
export interface SessionStore {
  /** Returns changes of other processes since the last read or write. */
  read(): StoredSession[]
  /** Locks the storage, reads changes of other processes, and writes the sessions that `change` returns. */
  change(change: () => StoredSession[]): Promise<void>
}

export interface SessionsOptions {
  /**
   * Respond with 404 to an id that no client created. If omitted, the first request with an id creates the
   * session.
   */
  onlyCreated?: boolean
  /** Recorded events that each session replays. */
  record?: readonly ListedEvent[] | undefined
  /** Storage to share sessions with other processes. If omitted, sessions end with this process. */
  store?: SessionStore
}

const maxPageSize = 100

/** Interval between reads of the storage while a session is followed. */
const pollIntervalMs = 200

/** Emulates the session service. */
export class Sessions {
  readonly #all = new Map<string, Session>()
  readonly #created = new Set<string>()
  readonly #options: SessionsOptions
  /** Delay before an agent reacts. */
  readonly #latency: number

  constructor(options: SessionsOptions, latency: number) {
    this.#options = options
    this.#latency = latency
  }

  create({ initial_events: events = [], ...fields }: CreateSessionBody): Promise<EmulatedResponse> {
    const id = newId('sesn')
    this.#created.add(id)
    return this.#change(id, (session) => session.accept(events, fields) ?? jsonResponse(session.describe()))
  }

  send(id: string, { events }: SendEventsBody): Promise<EmulatedResponse> {
    return this.#change(id, (session) => {
      const before = session.events.length
      const refusal = session.accept(events)
      const accepted = session.events.slice(before).filter(isFromClient)
      return refusal ?? createList(accepted.map(({ text }) => text))
    })
  }

  update(id: string, fields: object): Promise<EmulatedResponse> {
    return this.#change(id, (session) => session.accept([], fields) ?? jsonResponse(session.describe()))
  }

  describe(id: string): EmulatedResponse {
    return this.#withSession(id, (session) => jsonResponse(session.describe()))
  }

  describeAll(query: URLSearchParams): EmulatedResponse {
    this.#refresh()
    const all = [...this.#all.values()].map((session) => session.describe())
    const newest = all.sort((one, other) => other.created_at.localeCompare(one.created_at))
    return createPage(newest, query, (session) => JSON.stringify(session))
  }

  list(id: string, query: URLSearchParams): EmulatedResponse {
    return this.#withSession(id, ({ events }) => {
      const types = query.getAll('types[]')
      const wanted = types.length === 0 ? events : events.filter(({ type }) => types.includes(type))
      return createPage(
        query.get('order') === 'desc' ? wanted.toReversed() : wanted,
        query,
        ({ text }) => text,
      )
    })
  }

  /** Streams new events until the client closes the connection. */
  follow(id: string): EmulatedResponse {
    return this.#withSession(id, (session) => {
      const timer = this.#options.store && setInterval(() => this.#refresh(), pollIntervalMs)
      const news = on(session.newEvents, 'event')
      const close = () => {
        clearInterval(timer)
        void news.return?.()
      }
      async function* pieces(): AsyncGenerator<string> {
        try {
          // Sends a comment first, which shows the client that the stream is open.
          yield ': listening\n\n'
          for await (const [event] of news) yield encode(event)
        } finally {
          close()
        }
      }
      return { status: 200, contentType: 'text/event-stream', pieces: pieces(), close }
    })
  }

  #withSession(id: string, use: (session: Session) => EmulatedResponse): EmulatedResponse {
    this.#refresh()
    if (this.#options.onlyCreated && !this.#created.has(id))
      return errorResponse(404, `unknown session ${id}`)
    const session = this.#find(id)
    this.#all.set(id, session)
    return use(session)
  }

  #find(id: string): Session {
    const { record, store } = this.#options
    // The storage is locked until the agent has reacted, so the agent reacts without a delay.
    const schedule = (act: () => void) => void (store ? act() : setTimeout(act, this.#latency))
    return this.#all.get(id) ?? (record ? new PlayedSession(id, record) : new AgentSession(id, schedule))
  }

  async #change(id: string, use: (session: Session) => EmulatedResponse): Promise<EmulatedResponse> {
    const { store } = this.#options
    if (!store) return this.#withSession(id, use)
    let response: EmulatedResponse | undefined
    await store.change(() => {
      response = this.#withSession(id, use)
      const all = [...this.#all.values()].filter((session) => session instanceof AgentSession)
      return all
        .map((session) => session.toStored())
        .sort((one, other) => one.updated.localeCompare(other.updated))
    })
    return response as EmulatedResponse
  }

  /** Loads changes by other processes. */
  #refresh(): void {
    for (const stored of this.#options.store?.read() ?? []) {
      const session = this.#find(stored.id)
      if (session instanceof AgentSession) session.load(stored)
      this.#all.set(stored.id, session)
    }
  }
}

const encode = ({ id, type, text }: ListedEvent): string =>
  (id === undefined || /[\r\n\0]/.test(id) ? '' : `id: ${id}\n`) + encodeSseEvent({ event: type, data: text })

const createList = (texts: readonly string[], more = ''): EmulatedResponse => ({
  status: 200,
  contentType: 'application/json',
  pieces: [`{"data":[${texts.join(',')}]${more}}`],
})

/** Returns a page of a list. Its token for the next page is the number of items before that page. */
function createPage<T>(
  wanted: readonly T[],
  query: URLSearchParams,
  toJson: (item: T) => string,
): EmulatedResponse {
  const start = Number(query.get('page') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 20), maxPageSize)
  if (!(start >= 0) || !(limit >= 1))
    return errorResponse(400, 'page must be a token of the service, and limit a number')
  const end = start + limit
  const next = end < wanted.length ? String(end) : null
  return createList(wanted.slice(start, end).map(toJson), `,"next_page":${JSON.stringify(next)}`)
}
