import { escapeJson } from '../io/escape.ts'
import { describeFailure } from '../io/failure.ts'
import { callAfter } from '../timers.ts'
import type { BatchContext } from './batch-context.ts'
import type { Pause } from './flights.ts'
import type { Sinks } from './recorder.ts'
import { formatEnd, formatProgress, type Tally } from './tally.ts'

/** What a person is told of a batch. */
export interface Report {
  sinks: Omit<Sinks, 'window' | 'results'>
  /** Nothing more comes. */
  end(): void
  /** Says what it has come to; an unfinished one can be gone on with. */
  sum(tally: Tally, isUnfinished: boolean): void
}

interface ReportOptions {
  /** All lines, where that is known. */
  lines: number | undefined
  /** There is a file that `--resume` goes on with. */
  isResumable: boolean
}

/** How often the progress line is written anew. Milliseconds. */
const step = 250

export function createReport(context: BatchContext, { lines, isResumable }: ReportOptions): Report {
  const { host, flags, timers, output, secrets, status, note } = context
  const start = timers.now()
  const isShown = host.stderr.isTerminal && !flags.quiet && host.env.TERM !== 'dumb'
  let tally: Tally = { ok: 0, failed: 0, skipped: 0, tokens: 0 }
  // The names of files are in the results.
  Object.assign(context.facts, { counts: tally, files: undefined })
  let pausedUntil = 0
  let forget = () => {}

  const standing = () => ({
    tally,
    lines,
    seconds: (timers.now() - start) / 1000,
    pause: Math.max(0, (pausedUntil - timers.now()) / 1000),
  })

  function tick(): void {
    status.show(formatProgress(standing(), (host.stderr.columns || 80) - 1))
    forget = callAfter(timers, step, tick)
  }

  if (isShown) tick()
  const onResume = isResumable ? '; the same command with --resume goes on' : ''
  context.whenInterrupted(() => `${formatEnd(standing())}${onResume}`)
  context.cleanups.add(status.remove)

  return {
    sinks: {
      output: {
        write: (text) =>
          output.isTerminal ? status.above(() => output.write(escapeJson(text))) : output.write(text),
        flush: output.flush,
      },
      describe: (error) => describeFailure(secrets.redactFailure(error)),
      note,
      onProgress(next) {
        tally = next
        context.facts.counts = tally
      },
      onPause({ error, until, places }: Pause) {
        pausedUntil = until
        const wait = ((until - timers.now()) / 1000).toFixed(1)
        note(`${error.message}; all wait ${wait} s, then ${places} at a time`)
      },
    },
    end() {
      forget()
      status.remove()
      context.cleanups.delete(status.remove)
    },
    sum(last, isUnfinished) {
      tally = last
      note(`${formatEnd(standing())}${isUnfinished ? onResume : ''}`)
    },
  }
}
