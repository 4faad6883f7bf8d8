import { flagValue, hasFlag } from './argv/bare-flags.ts'
import type { End, ReportSource } from './report-file.ts'

/** The report of a run, if one is asked for. */
export interface Report {
  /**
   * Removes an earlier report; from here on one is written, whatever the end of the run. Throws a `CliError` if it
   * could not be written.
   */
  open(): Promise<void>
  /** None is written. */
  forgo(): void
  /** Writes it, once; also of a run that ended before its report was opened. Throws a `CliError`. */
  write(end: End): Promise<void>
  /** The same, but returns the failure's message. */
  tryWrite(end: End): Promise<string | undefined>
  /** The same for a signal: synchronous, and nothing is written before the report is open. */
  tryWriteNow(end: End): string | undefined
}

type ReportState = 'not open' | 'over' | ((end: End) => void)

/** The flags are read from the bare arguments, because they apply even if those are wrong. */
export function createReport(argv: string[], source: ReportSource): Report {
  const name = flagValue(argv, '--report')
  // A preview sends nothing, so there is nothing to report.
  const isPreview = ['--dry-run', '--curl'].some((flag) => hasFlag(argv, flag))
  let state: ReportState = name === undefined || isPreview ? 'over' : 'not open'

  async function open(): Promise<void> {
    if (state !== 'not open') return
    state = 'over'
    const { openReport } = await import('./report-file.ts')
    state = openReport(name ?? '', source)
  }

  function writeNow(end: End): void {
    if (typeof state === 'string') return
    const writeOnce = state
    state = 'over'
    writeOnce(end)
  }

  async function write(end: End): Promise<void> {
    await open()
    writeNow(end)
  }

  return {
    open,
    forgo() {
      state = 'over'
    },
    write,
    tryWrite: (end) => write(end).then(nothing, messageOf),
    tryWriteNow(end) {
      try {
        writeNow(end)
      } catch (error) {
        return messageOf(error)
      }
      return undefined
    },
  }
}

const nothing = () => undefined

const messageOf = (error: unknown) => (error as Error).message
