import type { CliError, FailureDetails } from '../errors.ts'
import { type Endpoint, endpoints } from '../wire/endpoints.ts'

/**
 * What a failed request means for what was to be done. `secretOrigin` names where the secret of
 * the request came from.
 */
export function consequenceOf(
  { kind, details }: CliError,
  endpoint: Endpoint,
  secretOrigin: string | undefined,
): FailureDetails {
  if ((details.status === 401 || details.status === 403) && secretOrigin !== undefined) {
    return {
      consequence: `its secret came from ${secretOrigin}: 'parley config list --effective' shows why`,
    }
  }
  const { sent = 'no' } = details
  if (sent === 'no') return { consequence: 'nothing was sent' }
  if (endpoint === endpoints.sendEvents) return eventConsequence(kind)
  const mayBeDone = sent === 'unknown' || (endpoint.repeat === 'refused' && kind === 'service')
  return mayBeDone && endpoint.repeat !== 'always'
    ? { consequence: 'the request was sent; whether it was carried out is not known' }
    : {}
}

/**
 * A request that must not be repeated. Gateways answer 5xx also after the service took an event, and what is no
 * receipt of the service's may come from anybody.
 */
const eventConsequence = (kind: CliError['kind']): FailureDetails =>
  ['unknown', 'service', 'response'].includes(kind)
    ? { consequence: "the event may have been accepted: look with 'parley events list' before sending again" }
    : {}
