import { flagValue, hasFlag } from './argv/bare-flags.ts'
import type { End, ReportSource } from './report-file.ts'

/** The report of a run, if one is asked for. */
export class Report {
  readonly #name: string
  readonly #source: ReportSource
  #state: 'not open' | 'over' | ((end: End) => void)

  /** The flags are read from the bare arguments, because they apply even if those are wrong. */
  constructor(argv: string[], source: ReportSource) {
    const name = flagValue(argv, '--report')
    // A preview sends nothing, so there is nothing to report.
    const isPreview = ['--dry-run', '--curl'].some((flag) => hasFlag(argv, flag))
    this.#name = name ?? ''
    this.#source = source
    this.#state = name === undefined || isPreview ? 'over' : 'not open'
  }

  /**
   * Removes an earlier report; from here on one is written, whatever the end of the run. Throws a `CliError` if it
   * could not be written.
   */
  async open(): Promise<void> {
    if (this.#state !== 'not open') return
    this.#state = 'over'
    const { openReport } = await import('./report-file.ts')
    this.#state = openReport(this.#name, this.#source)
  }

  /** None is written. */
  forgo(): void {
    this.#state = 'over'
  }

  /** Writes it, once; also of a run that ended before its report was opened. Throws a `CliError`. */
  async write(end: End): Promise<void> {
    await this.open()
    this.#writeNow(end)
  }

  /** The same, but returns the failure's message. */
  tryWrite(end: End): Promise<string | undefined> {
    return this.write(end).then(() => undefined, messageOf)
  }

  /** The same for a signal: synchronous, and nothing is written before the report is open. */
  tryWriteNow(end: End): string | undefined {
    try {
      this.#writeNow(end)
    } catch (error) {
      return messageOf(error)
    }
    return undefined
  }

  #writeNow(end: End): void {
    if (typeof this.#state === 'string') return
    const writeOnce = this.#state
    this.#state = 'over'
    writeOnce(end)
  }
}

const messageOf = (error: unknown) => (error as Error).message
