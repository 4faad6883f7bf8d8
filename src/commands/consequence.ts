import type { CliError, FailureDetails } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'

/** What a failed request means for what was to be done (`cli.md`, Failure). `secretFrom` names where its secret was. */
export function consequenceOf(
  { kind, details }: CliError,
  { repeat }: Endpoint,
  secretFrom: string | undefined,
): FailureDetails {
  const { sent = 'no' } = details
  if (sent === 'no') return { consequence: 'nothing was sent' }
  if (kind === 'credentials') return { consequence: `the secret came from ${secretFrom}` }
  if (repeat === 'refused') return eventConsequence(kind)
  return sent === 'unknown'
    ? { consequence: 'the request was sent; whether it was carried out is not known' }
    : {}
}

/** A request that must not be repeated: gateways answer 5xx also after the service took an event. */
function eventConsequence(kind: CliError['kind']): FailureDetails {
  if (kind === 'unknown' || kind === 'service') {
    return {
      consequence: "the event may have been accepted: look with 'parley events list' before sending again",
    }
  }
  return kind === 'response'
    ? { consequence: 'the event was accepted, only its receipt is incomplete: do not send it again' }
    : {}
}
