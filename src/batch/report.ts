import { groupDigits as count, tokensInWords } from '../content/tokens.ts'
import type { Context } from '../context.ts'
import type { CliError } from '../errors.ts'
import { describeRetry } from '../http/call.ts'
import { escapeJson } from '../io/escape.ts'
import { describeFailure } from '../io/failure.ts'
import { describeAgo, giveLifeSigns } from '../io/life-signs.ts'
import { createStatusLine, type StatusLine } from '../io/status-line.ts'
import { callAfter } from '../timers.ts'
import type { BatchInput, LineRequest } from './input.ts'
import type { Sinks, Tally } from './record.ts'
import type { Pause } from './run.ts'

/** A context whose messages come above a status line. */
export interface BatchContext extends Context {
  status: StatusLine
}

export function withStatusLine(context: Context): BatchContext {
  const status = createStatusLine(context.host.stderr)
  const above = (say: (line: string) => void) => (line: string) => status.above(() => say(line))
  const { note, warn, tell, foot } = context
  return {
    ...context,
    status,
    note: above(note),
    warn: above(warn),
    tell: above(tell),
    foot: above(foot),
  }
}

/** Tells a person how a batch goes, and how it ended. */
export interface BatchReport {
  sinks: Omit<Sinks, 'turns' | 'results'>
  onPause(pause: Pause): void
  /** A request of the line with this number is sent again after so many milliseconds. */
  onRetry(index: number, failure: CliError, wait: number): void
  /** Nothing more comes. */
  end(): void
  /** Prints the counts, and the way to go on if lines failed or are not done. */
  sum(tally: Tally): void
}

interface ReportOptions {
  input: Pick<BatchInput<LineRequest>, 'total' | 'skipped'>
  /** There is a file that `--resume` goes on with. */
  isResumable: boolean
}

/** How often the progress line is written anew. Milliseconds. */
const step = 250

export function createBatchReport(context: BatchContext, { input, isResumable }: ReportOptions): BatchReport {
  const { host, flags, timers, output, secrets, status, note } = context
  const start = timers.now()
  const isShown = host.stderr.isTerminal && !flags.quiet && host.env.TERM !== 'dumb'
  /** The reader of a pipe may write to the same terminal. */
  const isInTheWay = isShown && host.stdout.file === undefined
  let tally: Tally = { ok: 0, failed: 0, skipped: input.skipped, tokens: 0, earlierTokens: 0 }
  const counts = {
    get total() {
      return input.total ?? null
    },
    get ok() {
      return tally.ok
    },
    get failed() {
      return tally.failed
    },
    get skipped() {
      return tally.skipped
    },
    get notDone() {
      return leftOf(tally, input.total) ?? null
    },
  }
  // The names of files are in the results.
  Object.assign(context.summary, { counts, files: undefined })
  let pausedUntil = 0
  /** Of retries the number is shown, and not each one. */
  const isCounted = isShown && !flags.verbose
  let retries = 0
  let lastRetry = ''
  let last: { index: number; at: number } | undefined
  let forget = () => {}

  function standing(): Standing {
    const now = timers.now()
    return {
      tally,
      lines: input.total,
      retries,
      seconds: (now - start) / 1000,
      pause: Math.max(0, (pausedUntil - now) / 1000),
    }
  }

  function tick(): void {
    status.show(formatProgress(standing(), (host.stderr.columns || 80) - 1))
    forget = callAfter(timers, step, tick)
  }

  /** How far it is, if no line shows it. */
  function describeProgress(): string {
    const when = last ? `line ${last.index} came last, ${describeAgo(last.at, timers.now())}` : 'no line yet'
    return `${formatProgress(standing(), Infinity)}; ${when}`
  }

  if (isShown) tick()
  const endLifeSigns = giveLifeSigns(context, describeProgress)

  /** How to go on, if there is something left. */
  function describeWayOn(): string {
    const left = leftOf(tally, input.total)
    if (left === 0 && tally.failed === 0) return ''
    if (isResumable) return '; the same command with --resume goes on'
    if (left !== undefined && left === input.total && !tally.lost)
      return `; ${context.calls.sent === 'no' ? 'nothing was sent: ' : ''}the same command begins anew`
    if (left === undefined) return '; if lines are left, they cannot be resumed without --results'
    return left === 0 ? '' : '; without --results the rest cannot be resumed'
  }

  function describeEnd(): string {
    // With what was waited for before the first line.
    const seconds = (timers.now() - context.start) / 1000
    return `${formatEnd({ ...standing(), seconds })}${describeWayOn()}`
  }

  context.calls.sayInstead(describeEnd)
  context.cleanups.add(status.remove)

  return {
    sinks: {
      output: {
        write(text) {
          if (output.isTerminal) return status.above(() => output.write(escapeJson(text)))
          // The next tick shows the line again, below what the reader writes.
          if (isInTheWay) status.remove()
          return output.write(text)
        },
        flush: output.flush,
      },
      describe: (error) => describeFailure(secrets.redactFailure(error)),
      note,
      onProgress(next, index) {
        tally = next
        last = { index, at: timers.now() }
      },
    },
    onPause({ error, until, places }) {
      pausedUntil = until
      const wait = ((until - timers.now()) / 1000).toFixed(1)
      note(`${error.message}; all wait ${wait} s, then ${places} at a time`)
    },
    onRetry(index, failure, wait) {
      retries++
      lastRetry = `line ${index}: ${failure.message}`
      if (!isCounted) note(`line ${index}: ${describeRetry(failure, wait)}`)
    },
    end() {
      forget()
      endLifeSigns()
      status.remove()
      context.cleanups.delete(status.remove)
    },
    sum(final) {
      tally = final
      if (isCounted && retries > 0)
        note(
          retries === 1
            ? `1 retry, of ${lastRetry}`
            : `${count(retries)} retries, the last one of ${lastRetry}`,
        )
      note(describeEnd())
    },
  }
}

/** How many lines are not done; `undefined` if nobody knows. */
const leftOf = ({ ok, failed, skipped }: Tally, lines: number | undefined): number | undefined =>
  lines === undefined ? undefined : lines - ok - failed - skipped

export interface Standing {
  tally: Tally
  /** All lines, if that is known. */
  lines?: number
  /** Requests that were sent again. */
  retries?: number
  /** Since its first line was read; at its end since the run's start. */
  seconds: number
  /** The rest of a pause, in seconds. */
  pause?: number
}

/** How far a batch has come, in one line of at most `width` columns: the less important fields are left out first. */
export function formatProgress(
  { tally, lines, retries = 0, seconds, pause }: Standing,
  width: number,
): string {
  const { ok, failed, skipped } = tally
  const done = ok + failed + skipped
  const rate = seconds > 0 ? (ok + failed) / seconds : 0
  const left = lines !== undefined && rate > 0 ? (lines - done) / rate : undefined
  const fields = [
    lines === undefined ? `${count(done)} done` : `${count(done)} of ${count(lines)} done`,
    failed > 0 ? `${count(failed)} failed` : '',
    pause ? `paused for ${formatTime(pause)}` : '',
    retries > 0 ? `${count(retries)} ${retries === 1 ? 'retry' : 'retries'}` : '',
    left === undefined ? '' : `${formatTime(left)} left`,
    rate > 0 ? formatRate(rate) : '',
    describeTokens(tally),
  ].filter((field) => field !== '')
  while (fields.length > 1 && fields.join(' · ').length > width) fields.pop()
  return fields.join(' · ').slice(0, Math.max(0, width))
}

/** The counts at the end of a batch. */
export function formatEnd({ tally, lines, seconds }: Standing): string {
  const { ok, failed, skipped } = tally
  const open = leftOf(tally, lines) ?? 0
  return [
    `${count(ok)} ok`,
    `${count(failed)} failed`,
    ...(skipped > 0 ? [`${count(skipped)} done before`] : []),
    ...(open > 0 ? [`${count(open)} not done`] : []),
    describeTokens(tally),
    formatTime(seconds),
  ]
    .filter((field) => field !== '')
    .join(' · ')
}

/** Nobody is to take for this run's what an earlier one took. */
function describeTokens({ tokens, earlierTokens, isPartial = false }: Tally): string {
  if (tokens === 0) return ''
  return `${isPartial ? 'at least ' : ''}${tokensInWords(tokens)}${earlierTokens > 0 ? ' in all' : ''}`
}

const formatRate = (rate: number): string =>
  rate >= 1 ? `${rate < 10 ? rate.toFixed(1) : count(rate)}/s` : `${(rate * 60).toFixed(1)}/min`

function formatTime(seconds: number): string {
  const whole = Math.ceil(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${count(Math.floor(whole / 3600))} h ${Math.floor((whole % 3600) / 60)} min`
}
