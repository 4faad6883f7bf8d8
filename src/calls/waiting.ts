import type { Context } from '../context.ts'
import { startSpinner } from '../io/spinner.ts'
import { wantsColour } from '../io/style.ts'

/** Shows a person on a terminal that an answer is waited for, until the returned function is called. */
export function showWaiting({ host, flags, cleanups }: Context): () => void {
  const isWanted = !flags.quiet && !flags.verbose && host.env.TERM !== 'dumb'
  // ora goes on for ever where a line has no room for anything.
  const isShown = isWanted && host.stderr.isTerminal && host.stderr.columns !== 0
  if (!isShown) return () => {}
  const isColoured = wantsColour(flags.color ?? 'auto', host.env, true)
  const spinner = startSpinner(host.stderr, 'waiting for the answer', isColoured)
  const stop = () => {
    spinner.stop()
    cleanups.delete(stop)
  }
  cleanups.add(stop)
  return stop
}
