/** How far a batch has come. */
export interface Tally {
  ok: number
  failed: number
  /** Done by an earlier run. */
  skipped: number
  /** Of all answers that say it, an earlier run's too. */
  tokens: number
}

export interface Standing {
  tally: Tally
  /** All lines, where it is known. */
  lines?: number
  /** Since this run's start. */
  seconds: number
  /** What is left of a pause, in seconds. */
  pause?: number
}

const count = (number: number): string => String(Math.round(number)).replace(/\B(?=(\d{3})+$)/g, ',')

/** How far a batch has come, in one line of at most `width` columns: what matters less is left out first. */
export function formatProgress({ tally, lines, seconds, pause }: Standing, width: number): string {
  const { ok, failed, skipped, tokens } = tally
  const done = ok + failed + skipped
  const rate = seconds > 0 ? (ok + failed) / seconds : 0
  const left = lines !== undefined && rate > 0 ? (lines - done) / rate : undefined
  const fields = [
    lines === undefined ? `${count(done)} done` : `${count(done)} of ${count(lines)} done`,
    failed > 0 ? `${count(failed)} failed` : '',
    pause ? `paused for ${formatTime(pause)}` : '',
    left === undefined ? '' : `${formatTime(left)} left`,
    rate > 0 ? formatRate(rate) : '',
    tokens > 0 ? `${count(tokens)} tokens` : '',
  ].filter((field) => field !== '')
  while (fields.length > 1 && fields.join(' · ').length > width) fields.pop()
  return fields.join(' · ').slice(0, Math.max(0, width))
}

/** What a batch has come to, at its end. */
export function formatEnd({ tally, lines, seconds }: Standing): string {
  const { ok, failed, skipped, tokens } = tally
  const open = lines === undefined ? 0 : lines - ok - failed - skipped
  return [
    `${count(ok)} ok`,
    `${count(failed)} failed`,
    ...(skipped > 0 ? [`${count(skipped)} done before`] : []),
    ...(open > 0 ? [`${count(open)} not done`] : []),
    ...(tokens > 0 ? [`${count(tokens)} tokens`] : []),
    formatTime(seconds),
  ].join(' · ')
}

const formatRate = (rate: number): string =>
  rate >= 1 ? `${rate < 10 ? rate.toFixed(1) : count(rate)}/s` : `${(rate * 60).toFixed(1)}/min`

function formatTime(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${count(Math.floor(whole / 3600))} h ${Math.floor((whole % 3600) / 60)} min`
}
