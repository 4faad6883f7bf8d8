import { CliError } from '../../errors.ts'
import type { ServiceCaller } from '../../http/call.ts'
import type { RequestParts } from '../../http/request.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { readBody } from '../../wire/exchange.ts'
import { readPages } from '../../wire/page.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { type EventItem, readEventsPage } from '../../wire/sessions/events-page.ts'
import { isEventPiece } from '../../wire/sessions/session-event.ts'
import { parseTimestampMs } from '../../wire/timestamp.ts'

interface EventListQuery {
  types?: string[]
  order?: string
  limit?: number
}

/**
 * Minimum page size if the request has a type, a status or an order. A service may ignore these fields.
 * parley then filters or sorts the items itself, so it needs more items than the limit.
 */
const minPageSize = 100

/**
 * A list of exactly this length may be only a first page, unless the response shows that no page
 * follows.
 */
const commonPageSizes = [100, 200, 250, 500, 1000]

/** A service may refuse a larger page. */
const maxPageSize = 1000

/** Maximum number of events that parley holds back until their times show the order of the list. */
const maxHeldEvents = 1000

/** Waits before each request for a list that may not contain the newest events yet: 5 s in total. */
export const eventListPollDelaysMs = [0, 250, 250, 500, 1_000, 1_500, 1_500]

export function formatListQuery(
  { types = [], statuses = [], order, limit }: EventListQuery & { statuses?: string[] | undefined },
  cursor?: string,
): string {
  const isPartial = order || types.length > 0 || statuses.length > 0
  const size = limit && Math.min(isPartial ? Math.max(limit, minPageSize) : limit, maxPageSize)
  return [
    ...types.map((type) => `types%5B%5D=${encodeURIComponent(type)}`),
    ...statuses.map((status) => `statuses%5B%5D=${encodeURIComponent(status)}`),
    ...(order === undefined ? [] : [`order=${order}`]),
    ...(size === undefined ? [] : [`limit=${size}`]),
    ...(cursor === undefined ? [] : [cursor]),
  ].join('&')
}

/** Lists all events. The request names the order, because services have different default orders. */
export const listEventsOldestFirst = (caller: ServiceCaller, parts: RequestParts) =>
  listEvents(caller, parts, { order: 'asc' })

/**
 * Lists a session's events page by page. Services may ignore types, limit and order, so parley applies them
 * again. A list in the opposite order is read to its end before the first event is yielded. If a page cannot
 * be read, yields the earlier pages, then throws a `CliError`.
 */
export async function* listEvents(
  caller: ServiceCaller,
  parts: RequestParts,
  query: EventListQuery = {},
): AsyncGenerator<EventItem[]> {
  const { types, order, limit = Infinity } = query
  const hasWantedType = ({ event }: EventItem) => !types || types.includes(event.type)
  let isReversed = order === undefined ? false : undefined
  let held: EventItem[] = []
  let left = limit

  function release(): EventItem[] {
    const wanted = held.filter(hasWantedType)
    const items = (isReversed ? wanted.reverse() : wanted).slice(0, left)
    held = []
    left -= items.length
    return items
  }

  try {
    for await (const page of readEventPages(caller, parts, query)) {
      for (const item of page) if (!isReversed || hasWantedType(item)) held.push(item)
      isReversed ??= isReversedOrder(held, order)
      if (isReversed) {
        if (held.length > 2 * limit) held = held.filter(hasWantedType).slice(-limit)
        continue
      }
      const hasEnough = held.filter(hasWantedType).length >= left
      if (isReversed === undefined && !hasEnough && held.length < maxHeldEvents) continue
      isReversed = false
      yield release()
      if (left <= 0) return
    }
  } catch (error) {
    yield release()
    throw error
  }
  yield release()
}

export async function collectEvents(pages: AsyncIterable<readonly EventItem[]>): Promise<EventItem[]> {
  const items: EventItem[] = []
  // Spreading a page of over 100,000 events exceeds the maximum number of call arguments, so parley adds the
  // events one by one.
  for await (const page of pages) for (const item of page) items.push(item)
  return items
}

/** Yields pages in the service's order. Throws a `CliError` if the list may be incomplete. */
async function* readEventPages(
  caller: ServiceCaller,
  parts: RequestParts,
  query: EventListQuery,
): AsyncGenerator<EventItem[]> {
  const readPage = (pageQuery: EventListQuery, cursor?: string) =>
    caller.call(
      endpoints.listEvents,
      { ...parts, query: formatListQuery(pageQuery, cursor) || undefined },
      async ({ body }) => {
        const page = readEventsPage(await readBody(body))
        return { ...page, firstId: page.items[0]?.event.id }
      },
    )
  /**
   * Source texts of the last page's events, by id. An equal event of the same or the next page is dropped.
   */
  let last = new Map<string, string>()
  const dropRepeated = (items: EventItem[]) => {
    const before = last
    last = new Map()
    return items.filter(({ event, text }) => {
      const { id } = event
      const isRepeated = id !== undefined && (before.get(id) === text || last.get(id) === text)
      if (id !== undefined) last.set(id, text)
      // Removes previews of events (`event_start`, `event_delta`), because the list also has the whole events.
      return !isEventPiece(event) && !isRepeated
    })
  }
  let isFirst = true
  for await (const { items, hasNextField } of readPages(listName, (cursor) => readPage(query, cursor))) {
    yield dropRepeated(items)
    if (isFirst && !hasNextField && commonPageSizes.includes(items.length)) {
      const whole = await readPage({ ...query, limit: maxPageSize }).catch(ignoreRefusal)
      if (whole) yield dropRepeated(whole.items.slice(items.length))
      if (Math.max(items.length, whole?.items.length ?? 0) >= maxPageSize)
        throw createResponseError(
          `${listName} ends after ${maxPageSize} events, and does not show whether more follow`,
        )
    }
    isFirst = false
  }
}

const listName = 'the list of events'

/** If the service refuses a request with `maxPageSize`, parley treats the first page as the whole list. */
function ignoreRefusal(error: unknown): undefined {
  if (error instanceof CliError && error.kind === 'refused') return
  throw error
}

/**
 * Returns whether the events are in the opposite order, or `undefined` if their times do not show the order.
 * Single times may be out of order, because the clocks of the service's machines differ. So the longest
 * rising and the longest falling sequence of times are compared.
 */
function isReversedOrder(items: readonly EventItem[], order: string | undefined): boolean | undefined {
  const times = items
    .slice(0, maxHeldEvents)
    .map(({ event }) => parseTimestampMs(event.processed_at))
    .filter((time) => time >= 0)
  const up = findLongestRise(times)
  const down = findLongestRise(times.reverse())
  if (up === down || Math.max(up, down) < 3) return undefined
  return order === 'desc' ? up > down : down > up
}

function findLongestRise(numbers: readonly number[]): number {
  /** Smallest last numbers of increasing subsequences. The index is the length of the subsequence minus 1. */
  const ends: number[] = []
  for (const number of numbers) {
    const index = ends.findIndex((end) => end >= number)
    ends[index < 0 ? ends.length : index] = number
  }
  return ends.length
}
