import { findFlagValue, hasFlag } from './argv/bare-flags.ts'
import type { ReportSource, RunEnd } from './report-file.ts'

/** The report of a run, if one is asked for. */
export class Report {
  readonly #source: ReportSource
  #name: string | undefined
  #write: ((end: RunEnd) => void) | undefined

  /** The flags are read from the bare arguments, because they apply even if those are wrong. */
  constructor(argv: string[], source: ReportSource) {
    this.#source = source
    // A preview sends nothing, so there is nothing to report.
    if (!hasFlag(argv, '--dry-run') && !hasFlag(argv, '--curl')) this.#name = findFlagValue(argv, '--report')
  }

  /**
   * Removes an earlier report; from here on one is written, whatever the end of the run. Throws a `CliError` if it
   * could not be written.
   */
  async open(): Promise<void> {
    const name = this.#name
    this.disable()
    if (name === undefined) return
    const { prepareReport } = await import('./report-file.ts')
    this.#write = prepareReport(name, this.#source)
  }

  /** A report that is not open is not written. */
  disable(): void {
    this.#name = undefined
  }

  /** Writes it, once; also of a run that ended before its report was opened. Throws a `CliError`. */
  async write(end: RunEnd): Promise<void> {
    await this.open()
    this.writeSync(end)
  }

  /** The same for a signal: synchronous, and nothing is written before the report is open. */
  writeSync(end: RunEnd): void {
    const write = this.#write
    this.#write = undefined
    write?.(end)
  }
}
