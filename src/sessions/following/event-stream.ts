import { CliError } from '../../errors.ts'
import type { ServiceCaller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import { readErrorBytes } from '../../http/response.ts'
import { schedule, type Timers } from '../../timers.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { tryParseJson } from '../../wire/json/parse.ts'
import { createUnexpectedBodyFailure } from '../../wire/problem/problem.ts'
import { type EventItem, readEventItem } from '../../wire/sessions/events-page.ts'
import { createSseDecoder, isKeepAliveEvent, isStreamEnd } from '../../wire/sse.ts'

/**
 * Maximum length of the unread events, in characters. At this length, the stream stops reading from the
 * connection. Otherwise V8 would move the events to its old generation and free their memory late.
 */
const maxUnreadLength = 2 ** 20

/** Reads a session's events from one connection while they happen, and buffers them. */
export class EventStream {
  readonly #response: OpenResponse
  readonly #timers: Timers
  #items: EventItem[] = []
  #consumedCount = 0
  #unreadLength = 0
  #ending: { error?: unknown } | undefined
  #wake = () => {}
  #resumeReading = () => {}

  constructor(response: OpenResponse, timers: Timers) {
    this.#response = response
    this.#timers = timers
    void this.#read()
  }

  /**
   * Returns the next event. Returns `silence` if no event arrives within `maxMs` or if `wake` is called, and
   * `end` if the connection has ended. Throws a `CliError` for data that is not an event, and after the
   * deadline.
   */
  async next(maxMs: number): Promise<EventItem | 'silence' | 'end'> {
    if (this.#items.length === this.#consumedCount && !this.#ending) await this.#waitForItem(maxMs)
    const [item] = this.#take(1)
    if (item) return item
    if (!this.#ending) return 'silence'
    if ('error' in this.#ending) throw this.#ending.error
    return 'end'
  }

  wake(): void {
    this.#wake()
  }

  drain(): EventItem[] {
    const items = this.#take(this.#items.length)
    if (items.length > 0) this.#wake()
    return items
  }

  close(): void {
    this.#response.close()
    this.#resumeReading()
  }

  #take(count: number): EventItem[] {
    const items = this.#items.slice(this.#consumedCount, this.#consumedCount + count)
    this.#consumedCount += items.length
    // Removing the first element after each event would take quadratic time, so several are removed together.
    if (this.#consumedCount * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#consumedCount)
      this.#consumedCount = 0
    }
    for (const { text } of items) this.#unreadLength -= text.length
    if (this.#unreadLength < maxUnreadLength) this.#resumeReading()
    return items
  }

  async #waitForItem(maxMs: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = schedule(this.#timers, maxMs, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }

  async #read(): Promise<void> {
    try {
      for await (const item of readItems(this.#response)) {
        this.#items.push(item)
        this.#unreadLength += item.text.length
        this.#wake()
        if (this.#unreadLength >= maxUnreadLength)
          await new Promise<void>((resolve) => {
            this.#resumeReading = resolve
          })
      }
      this.#ending = {}
    } catch (error) {
      this.#ending = { error: this.#response.fail(error) }
    }
    this.#wake()
  }
}

type OpenResponse = Awaited<ReturnType<ServiceCaller['open']>>

export const createEventStreamRequest = (parts: RequestParts): RequestParts => ({
  ...parts,
  headers: { ...parts.headers, Accept: 'text/event-stream' },
})

export async function openEventStream(
  caller: ServiceCaller,
  parts: RequestParts,
  timers: Timers,
): Promise<EventStream> {
  const response = await caller.open(endpoints.followEvents, createEventStreamRequest(parts))
  const type = response.headers['content-type'] ?? ''
  if (response.status === 204 || (type && !/^text\/event-stream\b/i.test(type))) {
    throw response.fail(await createContentTypeError(response, timers))
  }
  return new EventStream(response, timers)
}

async function* readItems(response: HttpResponse): AsyncGenerator<EventItem> {
  const decoder = createSseDecoder()
  const bytes = response.body[Symbol.asyncIterator]()
  for (;;) {
    const next = await bytes.next().catch(treatFailureAsEnd)
    const events = next.done ? decoder.end().events : decoder.push(next.value)
    for (const { data, event } of events) {
      const isEmpty = isKeepAliveEvent(data, event) || isStreamEnd(data) || data === '{}'
      if (!isEmpty) yield readEventItem(data, event)
    }
    if (next.done) return
  }
}

/**
 * Treats a failed connection as the end of the stream, because the follower connects again. Rethrows the
 * error after the deadline, because parley then stops following.
 */
function treatFailureAsEnd(error: unknown): { done: true; value: undefined } {
  if (error instanceof CliError && !error.details.deadline) return { done: true, value: undefined }
  throw error
}

async function createContentTypeError(response: HttpResponse, timers: Timers): Promise<CliError> {
  const { status, headers } = response
  const text = new TextDecoder().decode(await readErrorBytes(response, timers))
  const what = status === 204 ? 'empty (204)' : headers['content-type']
  const value = tryParseJson(text)
  const failure = createUnexpectedBodyFailure(
    value ?? text,
    `the response is not a stream of events: it is ${what}`,
  )
  // A page that is not JSON often comes from a proxy. The next response may be a stream, so parley retries.
  const isPage = value === undefined && failure.kind === 'response'
  return failure.with(isPage ? { retry: 'later' } : { isPermanent: true })
}
