import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import { callAfter, type Timers } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import { tryParseJson } from '../../wire/json/parse.ts'
import { failureInstead } from '../../wire/problem/problem.ts'
import { type EventItem, readEventItem } from '../../wire/sessions/events-page.ts'
import { createSseDecoder, isKeepAlive, isTerminator, type SseDecoder } from '../../wire/sse.ts'

/** A session's events as they happen, over one connection. */
export interface EventStream {
  /**
   * The next event; `silence` if none comes within so many milliseconds, `end` if the connection ended, however it did.
   * Throws a `CliError` for what is not an event, and when the deadline has passed.
   */
  next(wait: number): Promise<EventItem | 'silence' | 'end'>
  /** The id after which another connection may go on, if the service gave one. */
  readonly lastId: string | undefined
  close(): void
}

/** What a request for a stream has beside a session's own parts. */
export const streamParts = (parts: RequestParts): RequestParts => ({
  ...parts,
  headers: { ...parts.headers, Accept: 'text/event-stream' },
})

export async function openEventStream(
  caller: Caller,
  parts: RequestParts,
  timers: Timers,
  lastId?: string,
): Promise<EventStream> {
  const asked = withLastId(streamParts(parts), lastId)
  const answer = await caller.open(endpoints.followEvents, { ...asked, isEndured: true })
  const type = answer.headers['content-type'] ?? ''
  if (answer.status === 204 || (type && !/^text\/event-stream\b/i.test(type))) {
    throw answer.complete(await explainWrongAnswer(answer, timers))
  }
  const decoder = createSseDecoder({ acceptsBare: true })
  const items = readItems(answer, decoder)
  let coming: Promise<EventItem | 'end'> | undefined

  async function take(): Promise<EventItem | 'end'> {
    try {
      const { done, value } = await items.next()
      return done ? 'end' : value
    } catch (error) {
      throw answer.complete(error)
    }
  }

  return {
    async next(wait) {
      coming ??= take()
      const isOver = new AbortController()
      const silence = timers.wait(wait, isOver.signal).then(() => 'silence' as const)
      try {
        const next = await Promise.race([coming, silence])
        if (next !== 'silence') coming = undefined
        return next
      } finally {
        isOver.abort()
      }
    },
    get lastId() {
      return decoder.lastId() ?? lastId
    },
    close() {
      coming?.catch(() => {})
      answer.close()
    },
  }
}

/** A header that could not be sent is left out: an event stream may say anything. */
const withLastId = (parts: RequestParts, lastId: string | undefined): RequestParts =>
  lastId !== undefined && /^[\x21-\x7e]{1,1000}$/.test(lastId)
    ? { ...parts, headers: { ...parts.headers, 'Last-Event-ID': lastId } }
    : parts

async function* readItems(response: HttpResponse, decoder: SseDecoder): AsyncGenerator<EventItem> {
  const bytes = response.body[Symbol.asyncIterator]()
  for (;;) {
    const next = await bytes.next().catch(ignoreCut)
    const events = next.done ? decoder.end().events : decoder.push(next.value)
    for (const { data, event } of events) {
      const isEmpty = isKeepAlive(data, event) || isTerminator(data) || data === '{}'
      if (!isEmpty) yield readEventItem(data, event)
    }
    if (next.done) return
  }
}

/** A cut or a silence ends a stream; a deadline that has passed ends the run. */
function ignoreCut(error: unknown): { done: true; value: undefined } {
  if (error instanceof CliError && !error.details.isPermanent) return { done: true, value: undefined }
  throw error
}

/** How much is read of an answer that is not a stream of events, in bytes, and for how long, in milliseconds. */
const [longestWrongAnswer, longestReading] = [256 * 1024, 5000]

/** What came in place of a stream of events, which may never end: an error of its type, else an error that names what it is. */
async function explainWrongAnswer(response: HttpResponse, timers: Timers): Promise<CliError> {
  const { status, headers } = response
  const cancel = callAfter(timers, longestReading, () => response.close())
  const bytes = await readBody(response.body, longestWrongAnswer).finally(cancel)
  const text = new TextDecoder().decode(bytes)
  response.close()
  const what = status === 204 ? 'empty (204)' : headers['content-type']
  const failure = failureInstead(
    tryParseJson(text) ?? text,
    `the answer is not a stream of events: it is ${what}`,
  )
  return failure.with({ isPermanent: true })
}
