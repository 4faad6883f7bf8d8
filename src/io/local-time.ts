import { parseTimestampMs } from '../wire/timestamp.ts'

/** Returns for example `2026-01-31 14:03:22`. Returns an invalid timestamp unchanged. */
export function formatLocalTime(timestamp: string): string {
  const utc = new Date(parseTimestampMs(timestamp))
  if (Number.isNaN(utc.getTime())) return timestamp
  // Subtracting the offset from a time makes its UTC fields equal to the local fields.
  const local = new Date(utc.getTime() - utc.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 19).replace('T', ' ')
}
