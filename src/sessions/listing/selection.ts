import type { Caller } from '../../http/caller.ts'
import type { RequestParts } from '../../http/drafter.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { type ListQuery, listPages } from './pages.ts'

/** A session's events in the order in which they happened, which may not be the service's default. */
export const listOldestFirst = (caller: Caller, parts: RequestParts): AsyncGenerator<EventItem[]> =>
  selectEvents(listPages(caller, parts, { order: 'asc' }), { order: 'asc' })

/**
 * Does what was asked of a list, also where the service ignored it: only these types, at most so many, in this order.
 * A list in the wrong order is read to its end before any of it is returned.
 */
export async function* selectEvents(
  pages: AsyncIterable<EventItem[]>,
  { types, order, limit = Infinity }: ListQuery,
): AsyncGenerator<EventItem[]> {
  let left = limit
  const turned: EventItem[] = []
  let isTurned: boolean | undefined
  for await (const items of pages) {
    isTurned ??= findTurn(items, order)
    const wanted = items.filter(({ event }) => !types || types.includes(event.type))
    if (isTurned) {
      for (const item of wanted) turned.push(item)
      turned.splice(0, turned.length - limit)
      continue
    }
    yield wanted.slice(0, left)
    left -= wanted.length
    if (left <= 0) return
  }
  if (turned.length > 0) yield turned.reverse()
}

/**
 * Whether a page is in the other order than was asked for; `undefined` where its times do not show it. One time that is
 * out of line shows nothing: the clocks of a service differ.
 */
function findTurn(items: readonly EventItem[], order: string | undefined): boolean | undefined {
  const times = items.map(({ event }) => Date.parse(event.processed_at ?? '')).filter((time) => time >= 0)
  const steps = times.slice(1).map((time, index) => Math.sign(time - (times[index] ?? 0)))
  const [up, down] = [1, -1].map((sign) => steps.filter((step) => step === sign).length) as [number, number]
  if (order === undefined || (up > 0 && down > 0)) return undefined
  if (up + down < 2) return undefined
  return order === 'desc' ? up > 0 : down > 0
}
