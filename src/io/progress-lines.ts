import { schedule, type Timers } from '../timers.ts'
import type { StdStream } from './output.ts'

/** A long run. */
interface LongRun {
  host: { stderr: Pick<StdStream, 'isTerminal'> }
  flags: { quiet?: boolean }
  /** When it began, by the forward clock. */
  start: number
  timers: Timers
  note(line: string): void
}

/** Milliseconds. */
const minute = 60_000

/**
 * Prints on a stderr that is not a terminal that a long run is still at work: each minute for the first ten, then every ten.
 * `describe` returns its progress, which is printed after `still at work after 3 min: `. Returns a function that ends this.
 */
export function printProgressLines(
  { host, flags, note, timers, start }: LongRun,
  describe: () => string,
): () => void {
  if (host.stderr.isTerminal || flags.quiet) return () => {}
  let stop = waitForNext()

  function waitForNext(): () => void {
    const passed = Math.floor((timers.now() - start) / minute)
    const next = passed < 10 ? passed + 1 : (Math.floor(passed / 10) + 1) * 10
    return schedule(timers, start + next * minute - timers.now(), () => {
      note(`still at work after ${next} min: ${describe()}`)
      stop = waitForNext()
    })
  }

  return () => stop()
}

/** How long ago something was, for a person. */
export function formatAgo(since: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - since) / 1000))
  return seconds < 100 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`
}
