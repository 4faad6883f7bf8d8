import type { OutputUnit } from '@cfworker/json-schema'

/** More of them help neither a person nor a model. */
const most = 20

/** Errors that only say that there are others, which follow them. */
const summaries = new Set([
  '$ref',
  'allOf',
  'if',
  'items',
  'prefixItems',
  'properties',
  'patternProperties',
  'additionalProperties',
  'propertyNames',
  'dependentSchemas',
  'unevaluatedItems',
  'unevaluatedProperties',
])

/** Where and why a value does not fit: `$.items[0].price: type: …`. */
export function describeMisfits(value: unknown, errors: readonly OutputUnit[]): string[] {
  const shown: OutputUnit[] = []
  for (const [index, error] of errors.entries()) {
    const { keyword } = error
    if (keyword !== 'false' && !(summaries.has(keyword) && isFollowed(errors, index))) shown.push(error)
    if (shown.length === most) break
  }
  return (shown.length > 0 ? shown : errors.slice(0, 1)).map(
    ({ instanceLocation, keyword, error }) =>
      `${formatPlace(value, instanceLocation)}: ${keyword}: ${error.replace(/\.$/, '')}`,
  )
}

function isFollowed(errors: readonly OutputUnit[], index: number): boolean {
  const [summary, next] = [errors[index], errors[index + 1]]
  return (
    summary !== undefined &&
    next !== undefined &&
    next.keyword !== 'false' &&
    next.keywordLocation.startsWith(`${summary.keywordLocation}/`)
  )
}

/** The place that a pointer such as `#/items/0` leads to, in the way of JSON path. */
function formatPlace(value: unknown, pointer: string): string {
  let place = '$'
  let inner = value
  for (const encoded of pointer.split('/').slice(1)) {
    const key = encoded.replaceAll('~1', '/').replaceAll('~0', '~')
    const isIndex = Array.isArray(inner)
    if (isIndex) place += `[${key}]`
    else place += /^[A-Za-z_][\w-]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
    inner = (inner as Record<string, unknown> | undefined)?.[key]
  }
  return place
}
