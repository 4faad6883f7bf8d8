import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type EventItem, readEventItem } from '../../wire/events-page.ts'
import { createSseDecoder } from '../../wire/sse.ts'
import type { Caller, RequestParts } from '../perform.ts'

/** A session's events as they happen, over one connection. */
export interface EventStream {
  /**
   * Ends when the connection does, however it does, or with `wait` after so many milliseconds of silence. Throws a
   * `CliError` for what is no event, and when the deadline has passed.
   */
  read(wait?: number): AsyncGenerator<EventItem>
  close(): void
}

/** What a request for a stream has beside a session's own parts. */
export const streamParts = (parts: RequestParts): RequestParts => ({
  ...parts,
  headers: { ...parts.headers, Accept: 'text/event-stream' },
})

export async function openEventStream(call: Caller, parts: RequestParts): Promise<EventStream> {
  const response = await call(endpoints.followEvents, streamParts(parts))
  const decoder = createSseDecoder()
  const bytes = response.body[Symbol.asyncIterator]()

  async function* read(wait?: number): AsyncGenerator<EventItem> {
    while (true) {
      const timer = wait === undefined ? undefined : setTimeout(response.close, wait)
      const next = await bytes.next().catch(ignoreCut)
      clearTimeout(timer)
      if (next.done) return
      for (const { data } of decoder.push(next.value)) {
        if (data.trim() !== '' && data.trim() !== '[DONE]') yield readEventItem(data)
      }
    }
  }

  return { read, close: () => response.close() }
}

/** A cut or a silence ends a stream; only a deadline that has passed ends the run. */
function ignoreCut(error: unknown): { done: true; value: undefined } {
  if (error instanceof CliError && !error.details.isPermanent) return { done: true, value: undefined }
  throw error
}
