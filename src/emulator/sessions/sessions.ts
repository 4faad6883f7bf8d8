import type { SendEvents } from '../../wire/sessions/send-events.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { CreateSession, UpdateSession } from '../../wire/sessions/session-requests.ts'
import { createRandom, randomId } from '../random.ts'
import { type EmulatedResponse, errorResponse, jsonResponse } from '../response.ts'
import { createSession, type KeptSession, type Session } from './session.ts'
import { followResponse, type StreamStyle } from './session-stream.ts'

/** The emulated session service: sessions live as long as it does, while there is room. */
export interface Sessions {
  create(body: CreateSession): EmulatedResponse
  update(id: string, body: UpdateSession): EmulatedResponse
  describe(id: string): EmulatedResponse
  describeAll(query: URLSearchParams): EmulatedResponse
  send(id: string, body: SendEvents): EmulatedResponse
  list(id: string, query: URLSearchParams): EmulatedResponse
  follow(id: string, query: URLSearchParams): EmulatedResponse
  /** Takes sessions as they were written down, in place of those of the same ids. */
  load(kept: readonly KeptSession[]): void
  /** All of them, once no agent has anything to do; the one that was used last comes last. */
  keep(): Promise<KeptSession[]>
}

export interface SessionsOptions {
  seed: string
  delay: number
  /** With it, only the sessions named exist; without, any session is made when it is first spoken of. */
  only?: readonly string[]
  styles: readonly StreamStyle[]
  /** What all sessions may take together, in characters of JSON. */
  room: number
}

const longestPage = 100

/** An accepted event under an id that no list or stream shows (public clients, 1). */
const toReceipt = (event: SessionEvent) => ({
  ...event,
  id: event.id?.replace('sevt_', 'sevt_receipt_'),
  processed_at: null,
})

export function createSessions({ seed, delay, only, styles, room }: SessionsOptions): Sessions {
  const sessions = new Map<string, Session>()
  const made = new Set(only)
  const random = createRandom([seed, 'sessions'])
  let kept = 0
  const grow = (size: number) => {
    kept += size
  }

  /** Forgets those that nobody has used for longest. */
  function makeRoom(current: Session): void {
    for (const [id, session] of sessions) {
      if (kept <= room) return
      if (session === current || session.isInUse) continue
      sessions.delete(id)
      kept -= session.size
    }
  }

  function withSession(id: string, use: (session: Session) => EmulatedResponse): EmulatedResponse {
    if (only && !made.has(id)) return errorResponse(404, `there is no session ${id}`)
    const session = sessions.get(id) ?? createSession({ id, random: createRandom([seed, id]), delay, grow })
    // The one that was used last comes last.
    sessions.delete(id)
    sessions.set(id, session)
    makeRoom(session)
    return use(session)
  }

  function send(session: Session, { events }: SendEvents): EmulatedResponse {
    if (kept > room) return noRoom()
    const taken = session.accept(events)
    if ('mismatch' in taken) return errorResponse(400, taken.mismatch)
    const isOwn = styles.includes('receipts')
    return jsonResponse(200, { data: isOwn ? taken.accepted.map(toReceipt) : taken.accepted })
  }

  function create({ initial_events: events, ...fields }: CreateSession): EmulatedResponse {
    if (kept > room) return noRoom()
    let id = randomId('sesn', random)
    while (sessions.has(id)) id = randomId('sesn', random)
    made.add(id)
    return withSession(id, (session) => {
      const refused = session.update(fields) ?? (events ? findRefusal(session.accept(events)) : undefined)
      if (!refused) return jsonResponse(200, session.describe())
      sessions.delete(id)
      made.delete(id)
      kept -= session.size
      return errorResponse(400, refused.mismatch)
    })
  }

  function load(all: readonly KeptSession[]): void {
    for (const each of all) {
      const { id } = each
      const earlier = sessions.get(id)
      const random = createRandom([seed, id, String(each.events.length)])
      sessions.delete(id)
      sessions.set(id, createSession({ id, random, delay, grow, kept: each, earlier }))
      kept -= earlier?.size ?? 0
    }
  }

  async function keep(): Promise<KeptSession[]> {
    const all = [...sessions.values()]
    while (all.some(({ isBusy }) => isBusy)) await new Promise(setImmediate)
    return all.map((session) => session.keep()).sort((one, other) => one.used - other.used)
  }

  return {
    load,
    keep,
    create,
    update: (id, body) =>
      withSession(id, (session) => {
        const refused = session.update(body)
        return refused ? errorResponse(400, refused.mismatch) : jsonResponse(200, session.describe())
      }),
    describe: (id) => withSession(id, (session) => jsonResponse(200, session.describe())),
    describeAll(query) {
      const all = [...sessions.values()].map((session) => session.describe())
      const newest = all.sort((one, other) => other.created_at.localeCompare(one.created_at))
      return pageResponse(query.get('order') === 'asc' ? newest.reverse() : newest, query)
    },
    send: (id, body) => withSession(id, (session) => send(session, body)),
    list: (id, query) => withSession(id, (session) => listResponse(session.events, query)),
    follow: (id, query) => withSession(id, (session) => followResponse(session, query, styles)),
  }
}

const noRoom = () => errorResponse(413, 'the sessions in use have no more room')

const findRefusal = (taken: ReturnType<Session['accept']>) => ('mismatch' in taken ? taken : undefined)

function listResponse(all: readonly SessionEvent[], query: URLSearchParams): EmulatedResponse {
  const types = query.getAll('types[]')
  const times = readTimes(query)
  if (!times) return errorResponse(400, 'created_at must be a date and time as in ISO 8601')
  const wanted = all.filter(
    ({ type, processed_at: at }) =>
      (types.length === 0 || types.includes(type)) && times.every((holds) => holds(Date.parse(at ?? ''))),
  )
  if (query.get('order') === 'desc') wanted.reverse()
  return pageResponse(wanted, query)
}

/** A page (public clients, 2); the token of the next one is how many came before it. */
function pageResponse(wanted: readonly object[], query: URLSearchParams): EmulatedResponse {
  const start = Number(query.get('page') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 20), longestPage)
  if (!(start >= 0) || !(limit >= 1))
    return errorResponse(400, 'page and limit must be what the service gave, and a number')
  const end = start + limit
  return jsonResponse(200, {
    data: wanted.slice(start, end),
    next_page: end < wanted.length ? String(end) : null,
  })
}

const comparisons: Record<string, (at: number, limit: number) => boolean> = {
  gt: (at, limit) => at > limit,
  gte: (at, limit) => at >= limit,
  lt: (at, limit) => at < limit,
  lte: (at, limit) => at <= limit,
}

/** What `created_at[…]` asks of an event's time; nothing if a value is not a time. */
function readTimes(query: URLSearchParams): ((at: number) => boolean)[] | undefined {
  const limits = Object.entries(comparisons).flatMap(([name, compare]) =>
    query.getAll(`created_at[${name}]`).map((value) => ({ compare, value })),
  )
  // Date.parse alone takes nearly anything.
  const isTime = (value: string) => /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?$/.test(value)
  if (limits.some(({ value }) => !isTime(value) || Number.isNaN(Date.parse(value)))) return undefined
  return limits.map(
    ({ compare, value }) =>
      (at) =>
        compare(at, Date.parse(value)),
  )
}
