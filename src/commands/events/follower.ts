import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { SessionEvent } from '../../wire/events.ts'
import { type EventItem, readEventItem } from '../../wire/events-page.ts'
import type { HttpResponse } from '../../wire/exchange.ts'
import { createSessionState, type SessionState } from '../../wire/session-state.ts'
import { createSseDecoder } from '../../wire/sse.ts'
import type { Caller, RequestParts } from '../perform.ts'
import { createFeed } from './feed.ts'
import { listPages } from './pages.ts'

interface FollowOptions {
  /** Also print what happened before. */
  hasHistory: boolean
  /** Events just sent: only what comes after them is printed, and only a rest after them counts. */
  after: readonly SessionEvent[]
  /** Print on stdout nothing but the ids of the tool uses that wait. */
  ids: boolean
}

export interface Follower {
  /** Prints a session's events until it comes to rest; returns the exit code (`cli.md`, events follow). */
  follow(options: FollowOptions): Promise<number>
}

/** How many times in a row a stream may break off without having brought anything. */
const mostFailures = 5

/**
 * Opens a session's stream, so that nothing is lost that happens from now on. Following lists what there was,
 * goes on with the stream, and after a cut does the same again, dropping what it has seen.
 */
export async function openFollower(context: Context, call: Caller, parts: RequestParts): Promise<Follower> {
  const open = () =>
    call(endpoints.followEvents, { ...parts, headers: { ...parts.headers, Accept: 'text/event-stream' } })
  let stream = await open()
  const { note } = context

  async function follow(options: FollowOptions): Promise<number> {
    const state = createSessionState()
    const feed = createFeed(context, { ids: options.ids, session: parts.params.session ?? '' })
    const seen = new Set<string>()
    const sent = new Set(options.after.map(({ id }) => id))
    let isPast = !options.hasHistory
    let isFirst = true

    /** Takes an event in; returns whether it was new. */
    async function take(item: EventItem): Promise<boolean> {
      const { id } = item.event
      if (id !== undefined && seen.has(id)) return false
      if (id !== undefined) seen.add(id)
      state.add(item.event)
      const isOwn = sent.has(id)
      if (isOwn) isPast = false
      else if (!isPast) await feed.print(item)
      return true
    }

    for (let failures = 0; ; ) {
      for await (const { items } of listPages(call, parts, {})) {
        for (const item of items) if (await take(item)) failures = 0
      }
      // What is not listed yet cannot be followed by a rest that is.
      const isListed = sent.size === 0 || !isPast
      if (state.rest && (isListed || !isFirst)) return finish(state)
      isFirst = false
      isPast = false
      try {
        for await (const item of readStream(stream)) {
          if (await take(item)) failures = 0
          if (state.rest) return finish(state)
        }
        throw new CliError('response', 'the stream of events ended', { sent: 'yes' })
      } catch (error) {
        if (!(error instanceof CliError) || error.kind !== 'response' || error.details.isPermanent)
          throw error
        if (++failures > mostFailures) throw error
        note(`${error.message}; connecting again`)
        await new Promise((resolve) => setTimeout(resolve, Math.min(250 * 2 ** failures, 8000)))
        stream = await open()
      }
    }

    function finish(ended: SessionState): Promise<number> {
      stream.close()
      return feed.end(ended)
    }
  }

  return { follow }
}

async function* readStream(response: HttpResponse): AsyncGenerator<EventItem> {
  const decoder = createSseDecoder()
  for await (const bytes of response.body) {
    for (const { data } of decoder.push(bytes)) if (data.trim() !== '[DONE]') yield readEventItem(data)
  }
}
