import type { FailureKind } from '../../errors.ts'

/** Returns the kind for the first known name, such as `rate_limit_error` or `429`. */
export function findFailureKind(names: string[]): FailureKind {
  const known = names.map(
    (name) => kinds.get(normalizeName(name)) ?? (/^5\d\d$/.test(name) ? 'service' : undefined),
  )
  return known.find((kind) => kind !== undefined) ?? 'response'
}

/** Converts for example `AccessDeniedException` and `access_denied_error` to `access_denied`. */
const normalizeName = (name: string) =>
  name
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replace(/_(?:error|exception)$/, '')

const namesByKind: [FailureKind, string][] = [
  ['credentials', 'authentication unauthenticated unauthorized permission permission_denied access_denied'],
  ['credentials', 'forbidden invalid_token invalid_client invalid_api_key 401 403'],
  ['refused', 'invalid_request invalid_argument failed_precondition validation bad_request'],
  ['refused', 'not_found 400 404'],
  ['payment', 'billing payment_required 402'],
  ['rate-limited', 'rate_limit resource_exhausted too_many_requests throttling slow_down 429'],
  ['service', 'overloaded unavailable service_unavailable api internal internal_server server'],
  ['service', 'timeout gateway_timeout deadline_exceeded'],
]

const kinds = new Map(namesByKind.flatMap(([kind, names]) => names.split(' ').map((name) => [name, kind])))
