import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { SessionEvent } from '../../wire/events.ts'
import type { EventItem } from '../../wire/events-page.ts'
import { createSessionState } from '../../wire/session-state.ts'
import type { Caller, RequestParts } from '../perform.ts'
import { openEventStream } from './event-stream.ts'
import { createFeed } from './feed.ts'
import { listPages } from './pages.ts'

interface FollowOptions {
  /** Also print what happened before. */
  hasHistory: boolean
  /** Events just sent: only what comes after them is printed, and only a rest after them counts. */
  sent?: readonly SessionEvent[]
  /** Print on stdout nothing but the ids of the tool uses that wait. */
  ids: boolean
}

export interface Follower {
  /** Prints a session's events until it comes to rest; returns the exit code (`cli.md`, events follow). */
  follow(options: FollowOptions): Promise<number>
  close(): void
}

/** How many times in a row the service may answer what is not understood. */
const mostFailures = 5

/** The shortest and the longest wait before a stream that broke off is opened again. Milliseconds. */
const [shortestWait, longestWait] = [250, 8000]

/** How long a stream is listened to for what the first list told of already. Milliseconds. */
const echo = 200

/**
 * Opens a session's stream, so that nothing is lost that happens from now on. Following lists what there was,
 * goes on with the stream, and after a cut or a silence does the same again, dropping what was printed.
 */
export async function openFollower(context: Context, call: Caller, parts: RequestParts): Promise<Follower> {
  let stream = await openEventStream(call, parts)

  async function follow({ hasHistory, sent, ids }: FollowOptions): Promise<number> {
    const state = createSessionState()
    const feed = createFeed(context, { ids, session: parts.params.session ?? '' })
    const known = new Set<string>()
    const printed = new Set((sent ?? []).map(({ id }) => id))
    let isNews = hasHistory

    /** Takes in what a list tells. What has no id cannot be told from what was there before. */
    async function takeListed({ event, text }: EventItem, isFirst: boolean): Promise<void> {
      if (event.id === undefined ? !isFirst : known.has(event.id)) return
      learn(event)
      if (sent?.some(({ id }) => id === event.id)) isNews = true
      else if (isNews) await print({ event, text })
    }

    /** Takes in what a stream brings, which is news also where a list has told of it. */
    async function takeLive(item: EventItem): Promise<void> {
      if (item.event.id === undefined || !known.has(item.event.id)) learn(item.event)
      await print(item)
    }

    function learn(event: SessionEvent): void {
      if (event.id !== undefined) known.add(event.id)
      state.add(event)
    }

    async function print(item: EventItem): Promise<void> {
      const { id } = item.event
      if (id !== undefined && printed.has(id)) return
      if (id !== undefined) printed.add(id)
      await feed.print(item)
    }

    async function takeList(isFirst: boolean): Promise<void> {
      for await (const { items } of listPages(call, parts, {})) {
        for (const item of items) await takeListed(item, isFirst)
      }
      if (sent && isFirst && !isNews) {
        // The list is older than what was sent: whatever it rests at was before, and the stream will tell.
        state.expectWork()
        known.clear()
      }
      isNews = true
    }

    async function takeStream(wait?: number): Promise<void> {
      for await (const item of stream.read(wait)) {
        await takeLive(item)
        if (state.rest && wait === undefined) return
      }
    }

    let failures = 0
    for (let round = 0; ; round++) {
      const before = printed.size
      try {
        await takeList(round === 0)
        if (state.rest && round === 0 && !hasHistory) await takeStream(echo)
        if (!state.rest) await takeStream()
        if (state.rest) return await feed.end(state)
        failures = 0
      } catch (error) {
        if (!isPassing(error) || ++failures > mostFailures) throw error
        context.note(error.message)
      }
      if (printed.size > before) round = 0
      stream.close()
      context.note('the stream of events broke off; connecting again')
      await new Promise((resolve) => setTimeout(resolve, Math.min(shortestWait * 2 ** round, longestWait)))
      stream = await openEventStream(call, parts)
    }
  }

  return { follow, close: () => stream.close() }
}

/** An answer that broke off, or was not understood, may be better the next time. */
const isPassing = (error: unknown): error is CliError =>
  error instanceof CliError && error.kind === 'response' && !error.details.isPermanent
