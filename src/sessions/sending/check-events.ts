import type { Context } from '../../context.ts'
import { usageProblems } from '../../errors.ts'
import { formatPath } from '../../wire/json/parse.ts'
import { warnAbout } from '../../wire/sessions/event-warnings.ts'
import { createEventsCheck } from '../../wire/sessions/send-events.ts'
import { type EventsText, placeInList } from './events-text.ts'

/**
 * Checks events by every rule of the specification; notes what is only unusual. Throws a usage error. They come
 * one by one: all together they would take several times the memory of their text.
 */
export function checkEvents(
  { note }: Context,
  events: Iterable<unknown>,
  given: EventsText | undefined,
): void {
  const placeOf = given?.placeOf ?? placeInList
  const check = createEventsCheck()
  const warnings: string[] = []
  let index = 0
  for (const event of events) {
    check.add(event)
    for (const warning of warnAbout(event)) warnings.push(`${placeOf(index, '')}: ${warning}`)
    index++
  }
  const problems = check.end().map(({ path: [place, ...rest], message }) => {
    const where = typeof place === 'number' ? placeOf(place, formatPath(rest)) : 'events'
    return `${where}: ${message}`
  })
  if (problems.length > 0) throw usageProblems(given?.name ?? 'the events', problems)
  for (const warning of warnings) note(warning)
}
