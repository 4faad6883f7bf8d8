import type { Caller } from '../../http/caller.ts'
import type { RequestParts } from '../../http/drafter.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type HttpResponse, readBody } from '../../wire/exchange.ts'
import type { Cursor } from '../../wire/page.ts'
import { createPageTrail } from '../../wire/page-trail.ts'
import { type EventItem, readEventsPage } from '../../wire/sessions/events-page.ts'

/** What a list is asked for; a service may ignore any of it (recorded, 6). */
export interface ListQuery {
  types?: string[]
  order?: string
  limit?: number
}

export const toQuery = ({ types = [], order, limit }: ListQuery, cursor?: Cursor): string =>
  [
    ...types.map((type) => `types%5B%5D=${encodeURIComponent(type)}`),
    ...(order === undefined ? [] : [`order=${order}`]),
    ...(limit === undefined ? [] : [`limit=${limit}`]),
    ...(cursor === undefined ? [] : [`${cursor.name}=${encodeURIComponent(cursor.value)}`]),
  ].join('&')

const readPage = async ({ body }: HttpResponse) =>
  readEventsPage(new TextDecoder().decode(await readBody(body)))

/** A session's events, page by page. */
export async function* listPages(
  caller: Caller,
  parts: RequestParts,
  query: ListQuery = {},
): AsyncGenerator<EventItem[]> {
  const trail = createPageTrail('the list of events')
  for (let cursor: Cursor | undefined; ; ) {
    const text = toQuery(query, cursor)
    const request = { ...parts, query: text || undefined }
    const { items, next } = await caller.call(endpoints.listEvents, request, readPage)
    trail.addMark(items[0]?.event.id, 'its pages repeat')
    yield items
    if (!next) return
    trail.addMark(JSON.stringify(next), `${next.name === 'page' ? 'next_page' : 'last_id'} repeats`)
    trail.addPage(items.length)
    cursor = next
  }
}
