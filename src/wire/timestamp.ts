/**
 * The timestamp is UTC unless it names a zone. Returns milliseconds since the epoch, or NaN for any other
 * text.
 */
export function parseTimestamp(timestamp: string | null | undefined): number {
  const [, moment, zone = 'Z'] =
    /^(\d{4}-\d\d-\d\dT[\d:.]{5,20})(Z|[+-]\d\d:?\d\d)?$/i.exec(timestamp ?? '') ?? []
  return Date.parse(`${moment}${zone}`)
}
