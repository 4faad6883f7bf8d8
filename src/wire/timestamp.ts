/**
 * Returns the milliseconds since the epoch, or NaN for a text that is not a timestamp. A timestamp without a
 * zone is in UTC.
 */
export function parseTimestampMs(timestamp: string | null | undefined): number {
  const [, moment, zone = 'Z'] =
    /^(\d{4}-\d\d-\d\dT[\d:.]{5,20})(Z|[+-]\d\d:?\d\d)?$/i.exec(timestamp ?? '') ?? []
  return Date.parse(`${moment}${zone}`)
}
