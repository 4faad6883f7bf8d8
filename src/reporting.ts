import { flagValue } from './bare-flags.ts'
import type { End, ReportSource } from './report.ts'

/** The report of a run, where one is asked for. */
export interface Reporting {
  /** Throws a `CliError` where it could not be written. */
  open(): Promise<void>
  /** Writes it, once. Throws a `CliError`. */
  write(end: End): void
  /** The same, but returns the failure's message. */
  tryWrite(end: End): string | undefined
}

/** The flag is read from the bare arguments, because it applies also where those are wrong. */
export function createReporting(argv: string[], source: ReportSource): Reporting {
  let writeOnce = (_: End) => {}
  function write(end: End): void {
    const writeNow = writeOnce
    writeOnce = () => {}
    writeNow(end)
  }
  return {
    async open() {
      const name = flagValue(argv, '--report')
      if (name === undefined) return
      const { openReport } = await import('./report.ts')
      writeOnce = openReport(name, source)
    },
    write,
    tryWrite(end) {
      try {
        write(end)
      } catch (error) {
        return (error as Error).message
      }
      return undefined
    },
  }
}
