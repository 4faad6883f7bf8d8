import type { SessionEvent } from '../wire/events.ts'
import type { SendEvents } from '../wire/send-events.ts'
import { encodeSseEvent } from '../wire/sse.ts'
import { createRandom } from './random.ts'
import { errorReply, jsonReply, type Reply } from './reply.ts'
import { createSession, type Session } from './session.ts'

/** The emulated session service: sessions live as long as it does. */
export interface Sessions {
  send(id: string, body: SendEvents): Reply
  list(id: string, query: URLSearchParams): Reply
  follow(id: string): Reply
}

export interface SessionsOptions {
  seed: string
  delay: number
  /** With it, only the sessions named exist; without, any session is made when it is first spoken of. */
  only?: readonly string[]
}

const longestPage = 100

export function createSessions({ seed, delay, only }: SessionsOptions): Sessions {
  const sessions = new Map<string, Session>()

  function withSession(id: string, use: (session: Session) => Reply): Reply {
    if (only && !only.includes(id)) return errorReply(404, `there is no session ${id}`)
    const session = sessions.get(id) ?? createSession({ random: createRandom(seed, id), delay })
    sessions.set(id, session)
    return use(session)
  }

  return {
    send: (id, { events }) => withSession(id, (session) => jsonReply(200, { data: session.accept(events) })),
    list: (id, query) => withSession(id, (session) => listReply(session.events, query)),
    follow: (id) => withSession(id, followReply),
  }
}

/** A page (`spec/beyond.md`); the token of the next one is how many events came before it. */
function listReply(all: readonly SessionEvent[], query: URLSearchParams): Reply {
  const types = query.getAll('types[]')
  const wanted = all.filter(({ type }) => types.length === 0 || types.includes(type))
  if (query.get('order') === 'desc') wanted.reverse()
  const start = Number(query.get('page') ?? 0)
  const limit = Math.min(Number(query.get('limit') ?? 20), longestPage)
  if (!(start >= 0) || !(limit >= 1))
    return errorReply(400, 'page and limit must be what the service gave, and a number')
  const end = start + limit
  return jsonReply(200, {
    data: wanted.slice(start, end),
    next_page: end < wanted.length ? String(end) : null,
  })
}

/** A stream of the events from now on, until the reader leaves. */
function followReply(session: Session): Reply {
  const waiting: SessionEvent[] = []
  let isOver = false
  let wake = () => {}
  const stop = session.listen((event) => {
    waiting.push(event)
    wake()
  })

  async function* pieces(): AsyncGenerator<string> {
    try {
      // Something comes at once, so that the reader knows that it is listening.
      yield ': listening\n\n'
      while (!isOver) {
        for (const event of waiting.splice(0))
          yield encodeSseEvent({ event: event.type, data: JSON.stringify(event) })
        if (waiting.length > 0 || isOver) continue
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    } finally {
      stop()
    }
  }

  return {
    status: 200,
    contentType: 'text/event-stream',
    pieces: pieces(),
    close() {
      isOver = true
      stop()
      wake()
    },
  }
}
