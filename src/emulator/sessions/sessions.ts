import { on } from 'node:events'
import type { SendEvents } from '../../wire/sessions/send-events.ts'
import type { CreateSession } from '../../wire/sessions/session-requests.ts'
import { encodeSseEvent } from '../../wire/sse.ts'
import { type EmulatedResponse, errorResponse, jsonResponse, newId } from '../response.ts'
import { AgentSession, type StoredSession } from './agent.ts'
import { PlayedSession } from './played.ts'
import { isFromClient, type ListedEvent, type Session } from './session.ts'

/** Where sessions are kept for other processes. */
export interface SessionStore {
  /** What others have written since it was last read or written. */
  read(): StoredSession[]
  /** Holds others off while `change` reads what they have written, and returns all that is to be kept. */
  change(change: () => StoredSession[]): Promise<void>
}

export interface SessionsOptions {
  /** There are no other sessions than those that a call made; without it one is made when it is first spoken of. */
  onlyMade?: boolean
  /** Each session plays these events. */
  record?: readonly ListedEvent[] | undefined
  /** Keeps the sessions for other processes; without it they end with this one. */
  store?: SessionStore
}

const longestPage = 100

/** How often another process's events are looked for while a session is followed. Milliseconds. */
const pollIntervalMs = 200

/** The emulated session service. */
export class Sessions {
  readonly #all = new Map<string, Session>()
  readonly #made = new Set<string>()
  readonly #options: SessionsOptions
  /** Milliseconds before an agent reacts. */
  readonly #latency: number

  constructor(options: SessionsOptions, latency: number) {
    this.#options = options
    this.#latency = latency
  }

  create({ initial_events: events = [], ...fields }: CreateSession): Promise<EmulatedResponse> {
    const id = newId('sesn')
    this.#made.add(id)
    return this.#change(id, (session) => session.accept(events, fields) ?? jsonResponse(session.describe()))
  }

  send(id: string, { events }: SendEvents): Promise<EmulatedResponse> {
    return this.#change(id, (session) => {
      const before = session.events.length
      const refusal = session.accept(events)
      const accepted = session.events.slice(before).filter(isFromClient)
      return refusal ?? listOf(accepted.map(({ text }) => text))
    })
  }

  describe(id: string): EmulatedResponse {
    return this.#with(id, (session) => jsonResponse(session.describe()))
  }

  describeAll(query: URLSearchParams): EmulatedResponse {
    this.#refresh()
    const all = [...this.#all.values()].map((session) => session.describe())
    const newest = all.sort((one, other) => other.created_at.localeCompare(one.created_at))
    return createPage(newest, query, (session) => JSON.stringify(session))
  }

  list(id: string, query: URLSearchParams): EmulatedResponse {
    return this.#with(id, ({ events }) => {
      const types = query.getAll('types[]')
      const wanted = types.length === 0 ? events : events.filter(({ type }) => types.includes(type))
      return createPage(
        query.get('order') === 'desc' ? wanted.toReversed() : wanted,
        query,
        ({ text }) => text,
      )
    })
  }

  /** A stream of the events from now on, or from after the last one that the reader had, until the reader leaves. */
  follow(id: string, last: string | undefined): EmulatedResponse {
    return this.#with(id, (session) => {
      const timer = this.#options.store && setInterval(() => this.#refresh(), pollIntervalMs)
      const known = last === undefined ? -1 : session.events.findIndex((event) => event.id === last)
      const missed = known < 0 ? [] : session.events.slice(known + 1)
      const news = on(session.newEvents, 'event')
      const close = () => {
        clearInterval(timer)
        void news.return?.()
      }
      async function* pieces(): AsyncGenerator<string> {
        try {
          // Something comes at once, so that the reader knows that it is listening.
          yield ': listening\n\n'
          for (const event of missed) yield encode(event)
          for await (const [event] of news) yield encode(event)
        } finally {
          close()
        }
      }
      return { status: 200, contentType: 'text/event-stream', pieces: pieces(), close }
    })
  }

  #with(id: string, use: (session: Session) => EmulatedResponse): EmulatedResponse {
    this.#refresh()
    if (this.#options.onlyMade && !this.#made.has(id)) return errorResponse(404, `there is no session ${id}`)
    const session = this.#find(id)
    this.#all.set(id, session)
    return use(session)
  }

  #find(id: string): Session {
    const { record, store } = this.#options
    // Others wait for a store until the agent is done.
    const later = (act: () => void) => void (store ? act() : setTimeout(act, this.#latency))
    return this.#all.get(id) ?? (record ? new PlayedSession(id, record) : new AgentSession(id, later))
  }

  async #change(id: string, use: (session: Session) => EmulatedResponse): Promise<EmulatedResponse> {
    const { store } = this.#options
    if (!store) return this.#with(id, use)
    let response: EmulatedResponse | undefined
    await store.change(() => {
      response = this.#with(id, use)
      const all = [...this.#all.values()].filter((session) => session instanceof AgentSession)
      return all
        .map((session) => session.keep())
        .sort((one, other) => one.updated.localeCompare(other.updated))
    })
    return response as EmulatedResponse
  }

  /** Takes over what other processes have written. */
  #refresh(): void {
    for (const kept of this.#options.store?.read() ?? []) {
      const session = this.#find(kept.id)
      if (session instanceof AgentSession) session.load(kept)
      this.#all.set(kept.id, session)
    }
  }
}

const encode = ({ id, type, text }: ListedEvent): string =>
  (id === undefined || /[\r\n\0]/.test(id) ? '' : `id: ${id}\n`) + encodeSseEvent({ event: type, data: text })

const listOf = (texts: readonly string[], more = ''): EmulatedResponse => ({
  status: 200,
  contentType: 'application/json',
  pieces: [`{"data":[${texts.join(',')}]${more}}`],
})

/** A page (public clients, 2); the token of the next one is how many came before it. */
function createPage<T>(
  wanted: readonly T[],
  query: URLSearchParams,
  spell: (item: T) => string,
): EmulatedResponse {
  const start = Number(query.get('page') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 20), longestPage)
  if (!(start >= 0) || !(limit >= 1))
    return errorResponse(400, 'page and limit must be what the service gave, and a number')
  const end = start + limit
  const next = end < wanted.length ? String(end) : null
  return listOf(wanted.slice(start, end).map(spell), `,"next_page":${JSON.stringify(next)}`)
}
