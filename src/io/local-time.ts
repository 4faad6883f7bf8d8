import { parseTimestampMs } from '../wire/timestamp.ts'

/** Returns for example `2026-01-31`, `14:03:22` and `UTC+01:00`; `undefined` for an invalid timestamp. */
export function getLocalTimeParts(timestamp: string) {
  const utc = new Date(parseTimestampMs(timestamp))
  if (Number.isNaN(utc.getTime())) return undefined
  // Adding the offset to a time makes its UTC fields equal to the local fields.
  const offset = -utc.getTimezoneOffset()
  const [date = '', time = ''] = new Date(utc.getTime() + offset * 60_000).toISOString().split('T')
  const [, hours, minutes] = /GMT([+-]\d\d)(\d\d)/.exec(utc.toString()) ?? []
  return { date, time: time.slice(0, 8), zone: `UTC${hours}:${minutes}`.replace('+00:00', '') }
}

export function formatTimeWithZone(timestamp: string): string {
  const moment = getLocalTimeParts(timestamp)
  if (!moment) return timestamp
  const { date, time, zone } = moment
  return `${date} ${time} ${zone}`
}

export function formatLocalTime(timestamp: string, now: number): string {
  const moment = getLocalTimeParts(timestamp)
  if (!moment) return timestamp
  const isToday = moment.date === getLocalTimeParts(new Date(now).toISOString())?.date
  return isToday ? moment.time : `${moment.date} ${moment.time}`
}
