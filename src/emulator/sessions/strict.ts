import { didYouMean } from '../../argv/spelling.ts'
import type { HttpRequest } from '../../wire/exchange.ts'
import { betas } from '../../wire/sessions/betas.ts'
import type { SendEvents } from '../../wire/sessions/send-events.ts'

/**
 * What a service may refuse about a request to a session although the specification does not say so (session events,
 * 2.2, 9.2 and 9.3). The vendor word in the names of headers may be any.
 */
export function findDoubts({ headers }: HttpRequest, events: SendEvents['events']): string[] {
  return [...doubtsAboutHeaders(headers), ...doubtsAboutEvents(events)]
}

function doubtsAboutHeaders(headers: Record<string, string>): string[] {
  const all = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
  const hasVersion = all.some(([name, value]) => name.endsWith('-version') && value !== '')
  const ids = all.flatMap(([name, value]) => (name.endsWith('-beta') ? value.split(/\s*,\s*/) : []))
  const unknown = ids.filter((id) => id !== '' && !betas.includes(id))
  return [
    ...(hasVersion ? [] : ['there is no version header']),
    ...unknown.map((id) => `there is no documented beta '${id.slice(0, 100)}'${didYouMean(id, betas)}`),
  ]
}

const doubtsAboutEvents = (events: SendEvents['events']): string[] =>
  events.flatMap((event, index) =>
    event.type === 'user.message' && event.content.length === 0
      ? [`events[${index}].content: must not be empty`]
      : [],
  )
