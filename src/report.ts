import { findFlagValue } from './argv/bare-flags.ts'
import type { ReportSource, RunOutcome } from './report-file.ts'

export class RunReport {
  readonly #source: ReportSource
  #name: string | undefined
  #write: ((end: RunOutcome) => void) | undefined

  constructor(source: ReportSource) {
    this.#source = source
  }

  /**
   * Reads the raw arguments, because the flags apply even if other arguments are invalid. Not called for
   * arguments that are not UTF-8, because the name of the report may be one of them. With an
   * empty name there is no report, because the check of all file names refuses the name.
   */
  readFlags(argv: string[]): void {
    this.#name = findFlagValue(argv, '--report') || undefined
  }

  async open(): Promise<void> {
    const name = this.#name
    this.disable()
    if (name === undefined) return
    const { createReportWriter } = await import('./report-file.ts')
    this.#write = createReportWriter(name, this.#source)
  }

  disable(): void {
    this.#name = undefined
  }

  /** Writes the report, and opens it first if the run failed before `open`. Throws a `CliError`. */
  async write(end: RunOutcome): Promise<void> {
    await this.open()
    this.writeSync(end)
  }

  /**
   * Replaces an earlier report of the run. Synchronous, because signal handlers call it. Has no effect before
   * `open`, after a signal, or after a failed write.
   */
  writeSync(end: RunOutcome): void {
    const write = this.#write
    this.#write = undefined
    write?.(end)
    if (!end.isSignal) this.#write = write
  }
}
