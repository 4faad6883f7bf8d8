import type { Caller } from '../../calls/caller.ts'
import type { RequestParts } from '../../calls/drafter.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type EventItem, readEventsPage } from '../../wire/events/events-page.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import type { Cursor } from '../../wire/page.ts'
import { notUnderstood } from '../../wire/problem/not-understood.ts'

/** What a list is asked for; a service may ignore any of it (recorded, 6). */
export interface ListQuery {
  types?: string[] | undefined
  order?: string | undefined
  limit?: number | undefined
}

export const toQuery = ({ types = [], order, limit }: ListQuery, cursor?: Cursor): string =>
  [
    ...types.map((type) => `types%5B%5D=${encodeURIComponent(type)}`),
    ...(order === undefined ? [] : [`order=${order}`]),
    ...(limit === undefined ? [] : [`limit=${limit}`]),
    ...(cursor === undefined ? [] : [`${cursor.name}=${encodeURIComponent(cursor.value)}`]),
  ].join('&')

/** How many pages in a row may be empty: a service may filter its pages after it made them. */
const mostEmpty = 20

const readPage = async ({ body }: HttpResponse) =>
  readEventsPage(new TextDecoder().decode(await readBody(body)))

/** A session's events, page by page. */
export async function* listPages(
  caller: Caller,
  parts: RequestParts,
  query: ListQuery = {},
): AsyncGenerator<EventItem[]> {
  const seen = new Set<string>()
  let empty = 0
  for (let cursor: Cursor | undefined; ; ) {
    const text = toQuery(query, cursor)
    const request = { ...parts, query: text || undefined }
    const { items, next } = await caller.call(endpoints.listEvents, request, readPage)
    if (isSeenBefore(items[0]?.event.id)) throw endless('its pages repeat')
    yield items
    if (!next) return
    if (isSeenBefore(JSON.stringify(next)))
      throw endless(`${next.name === 'page' ? 'next_page' : 'last_id'} repeats`)
    empty = items.length === 0 ? empty + 1 : 0
    if (empty > mostEmpty) throw endless(`${empty} pages in a row are empty`)
    cursor = next
  }

  function isSeenBefore(mark: string | undefined): boolean {
    if (mark === undefined) return false
    const isSeen = seen.has(mark)
    seen.add(mark)
    return isSeen
  }
}

const endless = (why: string) => notUnderstood(`the list of events does not end: ${why}`)
