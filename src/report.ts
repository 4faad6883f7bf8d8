import { flagValue, hasFlag } from './argv/bare-flags.ts'
import type { End, ReportSource } from './report-file.ts'

/** The report of a run, if one is asked for. */
export class Report {
  #prepare: (() => Promise<(end: End) => void>) | undefined
  #write: ((end: End) => void) | undefined

  /** The flags are read from the bare arguments, because they apply even if those are wrong. */
  constructor(argv: string[], source: ReportSource) {
    const name = flagValue(argv, '--report')
    // A preview sends nothing, so there is nothing to report.
    const isPreview = ['--dry-run', '--curl'].some((flag) => hasFlag(argv, flag))
    if (name !== undefined && !isPreview)
      this.#prepare = async () => (await import('./report-file.ts')).openReport(name, source)
  }

  /**
   * Removes an earlier report; from here on one is written, whatever the end of the run. Throws a `CliError` if it
   * could not be written.
   */
  async open(): Promise<void> {
    const prepare = this.#prepare
    this.forgo()
    this.#write = (await prepare?.()) ?? this.#write
  }

  /** A report that is not open is not written. */
  forgo(): void {
    this.#prepare = undefined
  }

  /** Writes it, once; also of a run that ended before its report was opened. Throws a `CliError`. */
  async write(end: End): Promise<void> {
    await this.open()
    this.writeNow(end)
  }

  /** The same for a signal: synchronous, and nothing is written before the report is open. */
  writeNow(end: End): void {
    const write = this.#write
    this.#write = undefined
    write?.(end)
  }
}
