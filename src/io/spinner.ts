import type { ShortLivedSet } from '../short-lived-set.ts'
import type { Timers } from '../timers.ts'
import type { Output, StdStream } from './output.ts'
import { wantsColour } from './style.ts'

interface SpinnerStage {
  host: { stderr: StdStream; timers: Timers; env: Readonly<Record<string, string | undefined>> }
  flags: { quiet?: boolean; verbose?: boolean; color?: string }
  cleanups: ShortLivedSet<() => unknown>
}

const spinnerDelayMs = 300

/**
 * Shows `what` and the elapsed seconds. Starts after 300 ms, so quick calls do not load ora. Returns a
 * function that removes the spinner, and adds the function to `cleanups`. The function returns true if the
 * spinner was visible. The cursor is then at the start of a line.
 */
export function showSpinner({ host, flags, cleanups }: SpinnerStage, what: string): () => boolean {
  const { stderr, timers, env } = host
  const isWanted = !flags.quiet && !flags.verbose && env.TERM !== 'dumb'
  // ora would loop forever on a terminal with 0 columns.
  const isShown = isWanted && stderr.isTerminal && stderr.columns !== 0
  if (!isShown) return () => false
  const since = timers.now()
  let spinner: { text: string; stop(): unknown } | undefined
  let clock: NodeJS.Timeout | undefined
  const timer = setTimeout(async () => {
    const { default: ora } = await import('ora')
    if (!cleanups.has(stop)) return
    spinner = ora({
      text: what,
      color: wantsColour(flags.color, env, true) && 'cyan',
      stream: stderr.open() as NodeJS.WriteStream,
      discardStdin: false,
      hideCursor: false,
    }).start()
    clock = setInterval(() => {
      if (spinner) spinner.text = `${what} · ${Math.floor((timers.now() - since) / 1000)} s`
    }, 1000)
  }, spinnerDelayMs)
  function stop(): boolean {
    cleanups.delete(stop)
    clearTimeout(timer)
    clearInterval(clock)
    const shown = spinner
    spinner = undefined
    shown?.stop()
    return shown !== undefined
  }
  cleanups.add(stop)
  return stop
}

export type Spinner = ReturnType<typeof createSpinner>

export function createSpinner(stage: SpinnerStage) {
  let stopShown: (() => boolean) | undefined
  const stop = (): void => {
    stopShown?.()
    stopShown = undefined
  }
  return {
    show(what: string): void {
      stopShown ??= showSpinner(stage, what)
    },
    stop,
    wrapOutput: (output: Output): Output => ({
      isTerminal: output.isTerminal,
      write(chunk) {
        if (chunk.length > 0) stop()
        return output.write(chunk)
      },
      flush: output.flush,
    }),
  }
}
