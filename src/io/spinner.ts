import type { BasicContext } from '../basic-context.ts'
import type { Output } from './output.ts'
import { usesColour } from './style.ts'

const spinnerDelayMs = 300

export type Spinner = ReturnType<typeof createSpinner>

export function createSpinner({ host, flags, cleanups }: Pick<BasicContext, 'host' | 'flags' | 'cleanups'>) {
  const { stderr, timers, env } = host
  let shown: { stop(): unknown } | undefined
  let timer: NodeJS.Timeout | undefined
  let clock: NodeJS.Timeout | undefined

  /** Returns true if the spinner was visible. The cursor is then at the start of a line. */
  function stop(): boolean {
    cleanups.delete(stop)
    clearTimeout(timer)
    clearInterval(clock)
    const wasShown = shown !== undefined
    shown?.stop()
    shown = undefined
    return wasShown
  }

  return {
    /**
     * Shows the text `what` with the elapsed seconds, or the text that the function `what` returns. Updates
     * the text every second. Starts after 300 ms, so quick calls do not load ora.
     */
    show(what: string | (() => string)): void {
      const isWanted = !flags.quiet && !flags.verbose && env.TERM !== 'dumb'
      // ora would loop forever on a terminal with 0 columns.
      if (!isWanted || !stderr.isTerminal || stderr.columns === 0 || cleanups.has(stop)) return
      const since = timers.now()
      const getSeconds = () => Math.floor((timers.now() - since) / 1000)
      const getText = () => (typeof what === 'string' ? `${what} · ${getSeconds()} s` : what())
      const own = setTimeout(async () => {
        const { default: ora } = await import('ora')
        if (timer !== own || !cleanups.has(stop)) return
        const spinner = ora({
          text: getText(),
          color: usesColour(flags.color, env, true) && 'cyan',
          stream: stderr.open() as NodeJS.WriteStream,
          discardStdin: false,
          hideCursor: false,
        }).start()
        shown = spinner
        clock = setInterval(() => {
          spinner.text = getText()
        }, 1000)
      }, spinnerDelayMs)
      timer = own
      cleanups.add(stop)
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
