import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/caller.ts'
import type { RequestParts } from '../../http/drafter.ts'
import type { Timers } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import { tryParseJson } from '../../wire/json/parse.ts'
import { failureInstead } from '../../wire/problem/problem.ts'
import { type EventItem, readEventItem } from '../../wire/sessions/events-page.ts'
import { createSseDecoder } from '../../wire/sse.ts'
import { isKeepAlive, isTerminator } from '../../wire/stream-words.ts'

/** A session's events as they happen, over one connection. */
export interface EventStream {
  /**
   * The next event; `silence` where none comes within so many milliseconds, `end` where the connection ended, however
   * it did. Throws a `CliError` for what is no event, and when the deadline has passed.
   */
  next(wait: number): Promise<EventItem | 'silence' | 'end'>
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
): Promise<EventStream> {
  const answer = await caller.open(endpoints.followEvents, streamParts(parts))
  const type = answer.headers['content-type'] ?? ''
  if (answer.status === 204 || (type && !/^text\/event-stream\b/i.test(type))) {
    throw answer.complete(await explainWrongAnswer(answer))
  }
  const items = readItems(answer)
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
    close() {
      coming?.catch(() => {})
      answer.close()
    },
  }
}

async function* readItems(response: HttpResponse): AsyncGenerator<EventItem> {
  const decoder = createSseDecoder()
  const bytes = response.body[Symbol.asyncIterator]()
  while (true) {
    const next = await bytes.next().catch(ignoreCut)
    if (next.done) return
    for (const { data, event } of decoder.push(next.value)) {
      const isEmpty = isKeepAlive(data, event) || isTerminator(data) || data === '{}'
      if (!isEmpty) yield readEventItem(data)
    }
  }
}

/** A cut or a silence ends a stream; a deadline that has passed ends the run. */
function ignoreCut(error: unknown): { done: true; value: undefined } {
  if (error instanceof CliError && !error.details.isPermanent) return { done: true, value: undefined }
  throw error
}

/** What is read of an answer that is no stream of events. Bytes. */
const longestWrongAnswer = 256 * 1024

/** What came in place of a stream of events: an error of its type, else an error that names what it is. */
async function explainWrongAnswer(response: HttpResponse): Promise<CliError> {
  const { status, headers } = response
  const text = new TextDecoder().decode(await readBody(response.body, longestWrongAnswer))
  response.close()
  const what = status === 204 ? 'empty (204)' : headers['content-type']
  const failure = failureInstead(
    tryParseJson(text) ?? text,
    `the answer is no stream of events: it is ${what}`,
  )
  return failure.with({ isPermanent: true })
}
