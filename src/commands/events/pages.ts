import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { type EventItem, readEventsPage } from '../../wire/events-page.ts'
import { collect } from '../../wire/exchange.ts'
import type { Caller, RequestParts } from '../perform.ts'

export interface ListQuery {
  types?: string[]
  order?: string
  /** How many events at most, over all pages. */
  limit?: number
}

export const toQuery = ({ types = [], order, limit }: ListQuery, page?: string): string =>
  [
    ...types.map((type) => `types%5B%5D=${encodeURIComponent(type)}`),
    ...(order === undefined ? [] : [`order=${order}`]),
    ...(limit === undefined ? [] : [`limit=${limit}`]),
    ...(page === undefined ? [] : [`page=${encodeURIComponent(page)}`]),
  ].join('&')

/** A session's events, page by page, each with the page's exact bytes. */
export async function* listPages(
  call: Caller,
  parts: RequestParts,
  query: ListQuery,
): AsyncGenerator<{ items: EventItem[]; bytes: Uint8Array }> {
  let page: string | undefined
  let left = query.limit ?? Infinity
  do {
    const text = toQuery(Number.isFinite(left) ? { ...query, limit: left } : query, page)
    const response = await call(endpoints.listEvents, { ...parts, ...(text ? { query: text } : {}) })
    const bytes = await collect(response.body)
    const { items, nextPage } = await readEventsPage(new TextDecoder().decode(bytes))
    yield { items: items.slice(0, left), bytes }
    left -= items.length
    if (nextPage !== undefined && nextPage === page) {
      throw new CliError('response', 'the list of events leads from a page to the same page', { sent: 'yes' })
    }
    page = nextPage
  } while (page !== undefined && left > 0)
}
