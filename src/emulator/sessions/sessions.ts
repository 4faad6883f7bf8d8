import { on } from 'node:events'
import type { SendEventsBody } from '../../wire/sessions/send-events.ts'
import type { CreateSessionBody } from '../../wire/sessions/session-requests.ts'
import { encodeSseEvent } from '../../wire/sse.ts'
import { createRandomId, type EmulatedResponse, errorResponse, jsonResponse } from '../response.ts'
import { AgentSession, type StoredSession } from './agent.ts'
import { ReplaySession } from './replay.ts'
import { type EmulatedSession, isFromClient, type ListedEvent } from './session.ts'

/** Storage through which several emulator processes share their sessions. */
export interface SessionStore {
  /** Returns the sessions that other processes have changed since the last read or write. */
  read(): StoredSession[]
  /** Locks the storage, calls `change`, and writes the sessions that it returns. */
  change(change: () => StoredSession[]): Promise<void>
}

export interface EmulatedSessionsOptions {
  /**
   * Respond with 404 to a session id that the emulator has not created. If omitted, the first request with an
   * id creates the session.
   */
  onlyCreated?: boolean
  /** Receives a line about each request that a real service would probably refuse. */
  warn?(line: string): void
  record?: readonly ListedEvent[] | undefined
  /** Shared storage. If omitted, the sessions exist only in this process. */
  store?: SessionStore
}

const maxPageSize = 100

/** Interval between reads of the storage while a client follows a session. */
const pollIntervalMs = 200

export class EmulatedSessions {
  readonly #sessions = new Map<string, EmulatedSession>()
  readonly #created = new Set<string>()
  readonly #options: EmulatedSessionsOptions
  readonly #latencyMs: number

  constructor(options: EmulatedSessionsOptions, latencyMs: number) {
    this.#options = options
    this.#latencyMs = latencyMs
  }

  create({ initial_events: events = [], ...fields }: CreateSessionBody): Promise<EmulatedResponse> {
    const id = createRandomId('sesn')
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
    const all = [...this.#sessions.values()].map((session) => session.describe())
    const newest = all.sort((one, other) => other.created_at.localeCompare(one.created_at))
    return createPage(newest, query, (session) => JSON.stringify(session))
  }

  list(id: string, query: URLSearchParams): EmulatedResponse {
    return this.#withSession(id, ({ events }) => {
      const types = query.getAll('types[]')
      const items = types.length === 0 ? events : events.filter(({ type }) => types.includes(type))
      return createPage(query.get('order') === 'desc' ? items.toReversed() : items, query, ({ text }) => text)
    })
  }

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
          // Sends a comment first, so that the client receives the response headers at once.
          yield ': listening\n\n'
          for await (const [event] of news) yield encodeEvent(event)
        } finally {
          close()
        }
      }
      return { status: 200, contentType: 'text/event-stream', pieces: pieces(), close }
    })
  }

  #withSession(id: string, use: (session: EmulatedSession) => EmulatedResponse): EmulatedResponse {
    this.#refresh()
    if (this.#options.onlyCreated && !this.#created.has(id))
      return errorResponse(404, `unknown session ${id}`)
    const { record, warn } = this.#options
    if (!record && !this.#created.has(id) && !this.#sessions.has(id))
      warn?.(`created the unknown session ${id}: --strict refuses it`)
    const session = this.#getSession(id)
    this.#sessions.set(id, session)
    return use(session)
  }

  #getSession(id: string): EmulatedSession {
    const { record, store } = this.#options
    // The agent must react while the storage is locked, so it reacts without a delay.
    const schedule = (act: () => void) => void (store ? act() : setTimeout(act, this.#latencyMs))
    return this.#sessions.get(id) ?? (record ? new ReplaySession(id, record) : new AgentSession(id, schedule))
  }

  async #change(id: string, use: (session: EmulatedSession) => EmulatedResponse): Promise<EmulatedResponse> {
    const { store } = this.#options
    if (!store) return this.#withSession(id, use)
    let response: EmulatedResponse | undefined
    await store.change(() => {
      response = this.#withSession(id, use)
      const all = [...this.#sessions.values()].filter((session) => session instanceof AgentSession)
      return all
        .map((session) => session.toStored())
        .sort((one, other) => one.updated.localeCompare(other.updated))
    })
    return response as EmulatedResponse
  }

  /** Loads the changes of other processes. */
  #refresh(): void {
    for (const stored of this.#options.store?.read() ?? []) {
      const session = this.#getSession(stored.id)
      if (session instanceof AgentSession) session.load(stored)
      this.#sessions.set(stored.id, session)
    }
  }
}

const encodeEvent = ({ id, type, text }: ListedEvent): string =>
  (id === undefined || /[\r\n\0]/.test(id) ? '' : `id: ${id}\n`) + encodeSseEvent({ event: type, data: text })

const createList = (texts: readonly string[], more = ''): EmulatedResponse => ({
  status: 200,
  contentType: 'application/json',
  pieces: [`{"data":[${texts.join(',')}]${more}}`],
})

/**
 * Creates a response with one page of items. The token `next_page` is the index of the next page's first
 * item.
 */
function createPage<T>(
  items: readonly T[],
  query: URLSearchParams,
  toJson: (item: T) => string,
): EmulatedResponse {
  const start = Number(query.get('page') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 20), maxPageSize)
  if (!(start >= 0) || !(limit >= 1))
    return errorResponse(400, 'page must be a page token, and limit a number')
  const end = start + limit
  const next = end < items.length ? String(end) : null
  return createList(items.slice(start, end).map(toJson), `,"next_page":${JSON.stringify(next)}`)
}
