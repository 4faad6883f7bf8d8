import type { StdStream } from './output.ts'

/** A sign of life on a terminal. */
export interface Spinner {
  stop(): void
}

const delay = 300

/** Shows a spinner after 300 ms; a quick answer never loads it. */
export function startSpinner(stream: StdStream, text: string, isColoured: boolean): Spinner {
  let spinner: { stop(): unknown } | undefined
  let isOver = false
  const timer = setTimeout(async () => {
    const { default: ora } = await import('ora')
    if (isOver) return
    spinner = ora({
      text,
      color: isColoured && 'cyan',
      stream: stream.open() as NodeJS.WriteStream,
      discardStdin: false,
      hideCursor: false,
    }).start()
  }, delay)
  return {
    stop() {
      isOver = true
      clearTimeout(timer)
      spinner?.stop()
      spinner = undefined
    },
  }
}
