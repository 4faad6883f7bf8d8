import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { encodeSseEvent } from '../../wire/sse.ts'
import type { EmulatedResponse } from '../response.ts'
import type { Session } from './session.ts'

/**
 * What such services do (recorded, 6): name every event of a stream `message`, send comments, send
 * an agent's text in pieces first, begin with all that was, and give receipts ids of their own.
 */
export const streamStyles = ['message', 'comments', 'deltas', 'replay', 'receipts'] as const
export type StreamStyle = (typeof streamStyles)[number]

/** Milliseconds between two comments. */
const keepAlive = 1000

/** A stream of the events from now on, until the reader leaves. */
export function followResponse(
  session: Session,
  query: URLSearchParams,
  styles: readonly StreamStyle[],
): EmulatedResponse {
  const has = (style: StreamStyle) => styles.includes(style)
  const waiting: SessionEvent[] = has('replay') ? [...session.events] : []
  let isOver = false
  let wake = () => {}
  const stop = session.listen((event) => {
    waiting.push(event)
    wake()
  })
  const isPieced = (event: SessionEvent) =>
    event.type === 'agent.message' && (has('deltas') || query.getAll('event_deltas[]').includes(event.type))
  const encode = (value: { type: string }) =>
    encodeSseEvent({ event: has('message') ? 'message' : value.type, data: JSON.stringify(value) })

  async function* pieces(): AsyncGenerator<string> {
    try {
      // Something comes at once, so that the reader knows that it is listening.
      yield has('comments') ? ': connected\n\n' : ': listening\n\n'
      while (!isOver) {
        for (const event of waiting.splice(0)) {
          if (isPieced(event)) yield* piecesOf(event).map(encode)
          yield encode(event)
        }
        if (waiting.length > 0 || isOver) continue
        const isQuiet = await new Promise<boolean>((resolve) => {
          const timer = has('comments') ? setTimeout(resolve, keepAlive, true) : undefined
          wake = () => {
            clearTimeout(timer)
            resolve(false)
          }
        })
        if (isQuiet) yield ':keepalive\n\n'
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

/** An event before it is whole: its beginning, and its text word by word. They have no id of their own. */
function piecesOf(event: SessionEvent): ({ type: string } & Record<string, unknown>)[] {
  const words = readText(event).match(/\S+\s*|\s+/g) ?? []
  const deltas = words.map((text) => ({
    type: 'event_delta',
    event_id: event.id,
    delta: { type: 'content_delta', index: 0, content: { type: 'text', text } },
  }))
  return [{ type: 'event_start', event: { id: event.id, type: event.type } }, ...deltas]
}
