import type { CliError, FailureDetails } from '../errors.ts'
import { type Endpoint, endpoints } from '../wire/endpoints.ts'

/**
 * What a failed request means for what was to be done. `secretOrigin` names where the request's secret came from.
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
  const mayBeDone = sent === 'unknown' || (endpoint.repeat === 'not-taken' && kind === 'service')
  return mayBeDone && endpoint.repeat !== 'always'
    ? { consequence: 'the request was sent; whether it was carried out is not known' }
    : {}
}

/**
 * Of a request that must not be repeated. A gateway may answer 5xx after the service accepted an event, and an answer
 * that is no receipt may come from anybody.
 */
const eventConsequence = (kind: CliError['kind']): FailureDetails =>
  ['unknown', 'service', 'response'].includes(kind)
    ? { consequence: "the event may have been accepted: look with 'parley events list' before sending again" }
    : {}
