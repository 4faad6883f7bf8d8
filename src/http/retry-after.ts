import type { HttpResponse } from '../wire/exchange.ts'

/**
 * Reads `Retry-After` (whole seconds or an HTTP date) or `Retry-After-Ms` into seconds; anything else counts as
 * absent. `now` is in milliseconds since the epoch.
 */
export async function readRetryAfter(
  headers: HttpResponse['headers'],
  now: number,
): Promise<number | undefined> {
  const { 'retry-after': value = '', 'retry-after-ms': milliseconds = '' } = headers
  if (/^\d+(\.\d+)?$/.test(milliseconds)) return toFinite(Number(milliseconds) / 1000)
  if (/^\d+$/.test(value)) return toFinite(Number(value))
  if (value === '') return undefined
  // Part of a file that is loaded already: the answer came through undici.
  const { parseHttpDate } = await import('./undici-client.ts')
  const date = parseHttpDate(value)
  return date && Math.max(0, (date.getTime() - now) / 1000)
}

const toFinite = (seconds: number) => Math.min(seconds, Number.MAX_SAFE_INTEGER)
