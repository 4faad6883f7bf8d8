import { on } from 'node:events'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SendEventsBody } from '../../wire/sessions/send-events.ts'
import { isClientEvent } from '../../wire/sessions/session-event.ts'
import type { CreateSessionBody } from '../../wire/sessions/session-requests.ts'
import { encodeSseEvent } from '../../wire/sse.ts'
import { createRandomId, type EmulatedResponse, toErrorResponse, toJsonResponse } from '../response.ts'
import { AgentSession, type StoredSession } from './agent.ts'
import { ReplaySession } from './replay.ts'
import type { EmulatedSession } from './session.ts'

/** A file through which several processes share the emulated sessions. */
export interface SessionStore {
  /** Returns the sessions that other processes have changed since the last read or write. */
  read(): StoredSession[]
  /** Locks the file, calls `change`, and writes the sessions that `change` returns. */
  change(change: () => StoredSession[]): Promise<void>
}

export interface EmulatedSessionsOptions {
  /** Delay of each response, and of each reaction of an agent. */
  latencyMs?: number
  /**
   * If true, refuses unknown session ids with 404, and undocumented betas. If false, the first request with an
   * unknown id creates the session.
   */
  isStrict?: boolean
  /**
   * Called for each unknown session id that creates a session. A real service would probably refuse such an
   * id.
   */
  onNewSession?(id: string): void
  /** Events of a recorded session. If given, every emulated session replays these events. */
  record?: readonly EventItem[] | undefined
  /** If omitted, the sessions end with this process. Stored sessions always include `sesn_1`. */
  store?: SessionStore
}

const maxPageSize = 100

const storePollIntervalMs = 200

export class EmulatedSessions {
  readonly #sessions = new Map<string, EmulatedSession>()
  readonly #options: EmulatedSessionsOptions

  constructor(options: EmulatedSessionsOptions) {
    this.#options = options
    if (options.store) this.#getSession('sesn_1')
  }

  create({ initial_events: events = [], ...fields }: CreateSessionBody): Promise<EmulatedResponse> {
    const id = createRandomId('sesn')
    this.#getSession(id)
    return this.#change(id, (session) => session.accept(events, fields) ?? toJsonResponse(session.describe()))
  }

  send(id: string, { events }: SendEventsBody): Promise<EmulatedResponse> {
    return this.#change(id, (session) => {
      const before = session.events.length
      const refusal = session.accept(events)
      const accepted = session.events.slice(before).filter(({ event }) => isClientEvent(event))
      return refusal ?? createList(accepted.map(({ text }) => text))
    })
  }

  update(id: string, fields: object): Promise<EmulatedResponse> {
    return this.#change(id, (session) => session.accept([], fields) ?? toJsonResponse(session.describe()))
  }

  describe(id: string): EmulatedResponse {
    return this.#withSession(id, (session) => toJsonResponse(session.describe()))
  }

  describeAll(query: URLSearchParams): EmulatedResponse {
    this.#refresh()
    const statuses = query.getAll('statuses[]')
    const all = [...this.#sessions.values()].map((session) => session.describe())
    const wanted = all.filter(({ status }) => statuses.length === 0 || statuses.includes(String(status)))
    const newest = wanted.sort((one, other) => other.created_at.localeCompare(one.created_at))
    return createPage(newest, query, (session) => JSON.stringify(session))
  }

  list(id: string, query: URLSearchParams): EmulatedResponse {
    return this.#withSession(id, ({ events }) => {
      const types = query.getAll('types[]')
      const items = types.length === 0 ? events : events.filter(({ event }) => types.includes(event.type))
      return createPage(query.get('order') === 'desc' ? items.toReversed() : items, query, ({ text }) => text)
    })
  }

  follow(id: string): EmulatedResponse {
    return this.#withSession(id, (session) => {
      const timer = this.#options.store && setInterval(() => this.#refresh(), storePollIntervalMs)
      const news = on(session.newEvents, 'event')
      const close = () => {
        clearInterval(timer)
        void news.return?.()
      }
      async function* pieces(): AsyncGenerator<string> {
        try {
          // Services may begin a stream with a comment, too (src/wire/README.md: recorded, 6).
          yield ': listening\n\n'
          for await (const [item] of news) yield encodeEvent(item)
        } finally {
          close()
        }
      }
      return { contentType: 'text/event-stream', pieces: pieces(), close }
    })
  }

  #withSession(id: string, use: (session: EmulatedSession) => EmulatedResponse): EmulatedResponse {
    this.#refresh()
    const { record, onNewSession, isStrict } = this.#options
    const isKnown = this.#sessions.has(id)
    if (!isKnown && isStrict) return toErrorResponse(404, `unknown session ${id}`)
    if (!isKnown && !record) onNewSession?.(id)
    return use(this.#getSession(id))
  }

  #getSession(id: string): EmulatedSession {
    const { record, store, latencyMs } = this.#options
    // With a store, the agent reacts at once, because a later reaction would change the session without the
    // lock of the store.
    const schedule = (act: () => void) => void (store ? act() : setTimeout(act, latencyMs))
    const session =
      this.#sessions.get(id) ?? (record ? new ReplaySession(id, record) : new AgentSession(id, schedule))
    this.#sessions.set(id, session)
    return session
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

  #refresh(): void {
    for (const stored of this.#options.store?.read() ?? []) {
      const session = this.#getSession(stored.id)
      if (session instanceof AgentSession) session.load(stored)
    }
  }
}

const encodeEvent = ({ event: { id, type }, text }: EventItem): string =>
  (id === undefined || /[\r\n\0]/.test(id) ? '' : `id: ${id}\n`) + encodeSseEvent({ event: type, data: text })

const createList = (texts: readonly string[], more = ''): EmulatedResponse => ({
  pieces: [`{"data":[${texts.join(',')}]${more}}`],
})

function createPage<T>(items: readonly T[], query: URLSearchParams, toJson: (item: T) => string) {
  const start = Number(query.get('page') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 20), maxPageSize)
  if (!(start >= 0) || !(limit >= 1))
    return toErrorResponse(400, 'page must be a page token, and limit a number')
  const end = start + limit
  const next = end < items.length ? String(end) : null
  return createList(items.slice(start, end).map(toJson), `,"next_page":${JSON.stringify(next)}`)
}
