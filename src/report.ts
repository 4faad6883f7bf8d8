import { findFlagValue, hasFlag } from './argv/bare-flags.ts'
import type { ReportSource, RunEnd } from './report-file.ts'

export class RunReport {
  readonly #source: ReportSource
  #name: string | undefined
  #write: ((end: RunEnd) => void) | undefined

  /** The flags are read from the raw arguments, because they apply even if other arguments are invalid. */
  constructor(argv: string[], source: ReportSource) {
    this.#source = source
    // A preview sends nothing, so no report is written.
    if (!hasFlag(argv, '--dry-run') && !hasFlag(argv, '--curl')) this.#name = findFlagValue(argv, '--report')
  }

  /**
   * Removes an earlier report. From now on, every end of the run writes a report. Throws a `CliError` if a
   * report cannot be written.
   */
  async open(): Promise<void> {
    const name = this.#name
    this.disable()
    if (name === undefined) return
    const { prepareReport } = await import('./report-file.ts')
    this.#write = prepareReport(name, this.#source)
  }

  /** No effect after `open`. */
  disable(): void {
    this.#name = undefined
  }

  /** Opens the report first if the run failed before `open`. Throws a `CliError`. */
  async write(end: RunEnd): Promise<void> {
    await this.open()
    this.writeSync(end)
  }

  /** Writes the report in a signal handler, which cannot wait. No effect before `open`. */
  writeSync(end: RunEnd): void {
    const write = this.#write
    this.#write = undefined
    write?.(end)
  }
}
