import type { BasicContext } from '../basic-context.ts'
import { schedule } from '../timers.ts'
import type { MessagePrinter } from './messages.ts'

interface LongRun extends BasicContext {
  messages: MessagePrinter
}

const minute = 60_000

/**
 * Prints progress on a stderr that is not a terminal: every minute for ten minutes, then every ten minutes.
 * `describe` gets a text such as `after 3 min` and returns the line, or `undefined` to print none. The
 * returned function stops the output.
 */
export function printProgressLines(
  { host, flags, messages, reportData }: LongRun,
  describe: (time: string) => string | undefined,
): () => void {
  const { timers } = host
  if (host.stderr.isTerminal || flags.quiet) return () => {}
  let stop = waitForNext()

  function waitForNext(): () => void {
    const passed = Math.floor((timers.now() - reportData.startMs) / minute)
    const next = passed < 10 ? passed + 1 : (Math.floor(passed / 10) + 1) * 10
    return schedule(timers, reportData.startMs + next * minute - timers.now(), () => {
      const line = describe(`after ${next} min`)
      if (line !== undefined) messages.note(line)
      stop = waitForNext()
    })
  }

  return () => stop()
}

export function formatTimeAgo(since: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - since) / 1000))
  return seconds < 100 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`
}
