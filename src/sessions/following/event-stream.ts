import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import { schedule, type Timers } from '../../timers.ts'
import { createBodyTextDecoder, decodeBodyText } from '../../wire/charset.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import { tryParseJson } from '../../wire/json/parse.ts'
import { unexpectedBodyFailure } from '../../wire/problem/problem.ts'
import { type EventItem, readEventItem } from '../../wire/sessions/events-page.ts'
import { createSseDecoder, isKeepAlive, isStreamEnd, type SseDecoder } from '../../wire/sse.ts'

/**
 * Maximum length of unread events, in characters. More events would leave V8's young generation, so reading
 * pauses.
 */
const maxUnreadLength = 2 ** 20

/**
 * Reads a session's events from one connection while they happen. The reader does not wait for a consumer,
 * until too many events are unread.
 */
export class EventStream {
  readonly #response: OpenResponse
  readonly #timers: Timers
  readonly #decoder: SseDecoder
  #items: EventItem[] = []
  /** Number of consumed events. */
  #taken = 0
  #unreadLength = 0
  #end: { error?: unknown } | undefined
  /** Ends the wait of the consumer in `next`. */
  #wake = () => {}
  /** Ends the reader's pause. */
  #resumeReading = () => {}

  constructor(response: OpenResponse, timers: Timers) {
    this.#decoder = createSseDecoder(createBodyTextDecoder(response.headers['content-type'] ?? ''))
    this.#response = response
    this.#timers = timers
    void this.#read()
  }

  /**
   * Returns the next event; `silence` if none arrives within `wait` milliseconds or `wake` is called, `end`
   * if the connection ended for any reason. Throws a `CliError` for data that is not an event, and when the
   * deadline has passed.
   */
  async next(wait: number): Promise<EventItem | 'silence' | 'end'> {
    if (this.#items.length === this.#taken && !this.#end) await this.#waitForItem(wait)
    const [item] = this.#take(1)
    if (item) return item
    if (!this.#end) return 'silence'
    if ('error' in this.#end) throw this.#end.error
    return 'end'
  }

  /** Ends the wait of `next`. */
  wake(): void {
    this.#wake()
  }

  /** Returns all unread events. */
  takeAll(): EventItem[] {
    const items = this.#take(this.#items.length)
    if (items.length > 0) this.#wake()
    return items
  }

  close(): void {
    this.#response.close()
    this.#resumeReading()
  }

  #take(count: number): EventItem[] {
    const items = this.#items.slice(this.#taken, this.#taken + count)
    this.#taken += items.length
    // Removing the first element for each event would be quadratic, so consumed events are removed together.
    if (this.#taken * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#taken)
      this.#taken = 0
    }
    for (const { text } of items) this.#unreadLength -= text.length
    if (this.#unreadLength < maxUnreadLength) this.#resumeReading()
    return items
  }

  async #waitForItem(wait: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const cancel = schedule(this.#timers, wait, resolve)
      this.#wake = () => {
        cancel()
        resolve()
      }
    })
  }

  async #read(): Promise<void> {
    try {
      for await (const item of readItems(this.#response, this.#decoder)) {
        this.#items.push(item)
        this.#unreadLength += item.text.length
        this.#wake()
        if (this.#unreadLength >= maxUnreadLength)
          await new Promise<void>((resolve) => {
            this.#resumeReading = resolve
          })
      }
      this.#end = {}
    } catch (error) {
      this.#end = { error: this.#response.fail(error) }
    }
    this.#wake()
  }
}

type OpenResponse = Awaited<ReturnType<Caller['open']>>

/** Returns the request for a session's stream. */
export const createStreamRequest = (parts: RequestParts): RequestParts => ({
  ...parts,
  headers: { ...parts.headers, Accept: 'text/event-stream' },
})

export async function openEventStream(
  caller: Caller,
  parts: RequestParts,
  timers: Timers,
): Promise<EventStream> {
  const response = await caller.open(endpoints.followEvents, createStreamRequest(parts))
  const type = response.headers['content-type'] ?? ''
  if (response.status === 204 || (type && !/^text\/event-stream\b/i.test(type))) {
    throw response.fail(await describeOtherResponse(response, timers))
  }
  return new EventStream(response, timers)
}

async function* readItems(response: HttpResponse, decoder: SseDecoder): AsyncGenerator<EventItem> {
  const bytes = response.body[Symbol.asyncIterator]()
  for (;;) {
    const next = await bytes.next().catch(ignoreCut)
    const events = next.done ? decoder.end().events : decoder.push(next.value)
    for (const { data, event } of events) {
      const isEmpty = isKeepAlive(data, event) || isStreamEnd(data) || data === '{}'
      if (!isEmpty) yield readEventItem(data, event)
    }
    if (next.done) return
  }
}

/**
 * Treats a cut or silent stream as ended, because the follower connects again. Rethrows a passed deadline,
 * which ends the run.
 */
function ignoreCut(error: unknown): { done: true; value: undefined } {
  if (error instanceof CliError && !error.details.deadline) return { done: true, value: undefined }
  throw error
}

/** Limits for reading a response that is not an event stream, because it may never end. */
const [maxOtherBodyBytes, maxReadingMs] = [256 * 1024, 5000]

/**
 * Returns the failure for a response that is not an event stream: the service's error if the body contains
 * one, otherwise the content type.
 */
async function describeOtherResponse(response: HttpResponse, timers: Timers): Promise<CliError> {
  const { status, headers } = response
  const cancel = schedule(timers, maxReadingMs, () => response.close())
  const bytes = await readBody(response.body, maxOtherBodyBytes).finally(cancel)
  const text = decodeBodyText(bytes, headers['content-type'])
  response.close()
  const what = status === 204 ? 'empty (204)' : headers['content-type']
  const failure = unexpectedBodyFailure(
    tryParseJson(text) ?? text,
    `the answer is not a stream of events: it is ${what}`,
  )
  return failure.with({ isPermanent: true })
}
