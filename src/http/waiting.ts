import type { Context } from '../context.ts'
import { startSpinner } from '../io/spinner.ts'
import { wantsColour } from '../io/style.ts'

/**
 * Makes what shows a spinner on a terminal while `work` is not done. With several at once, it stops when the first is
 * done: from then on there is output, which a spinner would cover.
 */
export function createWaiting(context: Context): <T>(work: Promise<T>) => Promise<T> {
  let count = 0
  let stop = () => {}
  return async (work) => {
    if (count++ === 0) stop = showSpinner(context)
    try {
      return await work
    } finally {
      count--
      stop()
    }
  }
}

function showSpinner({ host, flags, cleanups }: Context): () => void {
  const isWanted = !flags.quiet && !flags.verbose && host.env.TERM !== 'dumb'
  // ora loops for ever where a line has no columns.
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
