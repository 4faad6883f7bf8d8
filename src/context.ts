import type { ArraySet } from './array-set.ts'
import type { Deadline } from './deadline.ts'
import type { CliError } from './errors.ts'
import type { ShellCommand } from './io/command.ts'
import { InputReader, type Stdin } from './io/input.ts'
import { createMessagePrinter, type MessagePrinter } from './io/messages.ts'
import { createOutput, type Output, type StdStream } from './io/output.ts'
import type { ProcessInfo } from './io/paths.ts'
import type { ReportData } from './report-data.ts'
import type { Secrets } from './secrets.ts'
import type { Timers } from './timers.ts'
import type { Exchange } from './wire/exchange.ts'
import type { WorkTracker } from './work-tracker.ts'

export type FlagSettings = Partial<Record<string, { value: unknown; flag: string }>>

/** Tests replace the streams, timers, network and signals of the process. */
export interface Host extends ProcessInfo {
  stdin: Stdin
  stdout: StdStream
  stderr: StdStream
  /** If omitted, parley uses the network or, for the demo profile, the emulator. */
  exchange?: Exchange
  checkArguments?(argv: string[]): void
  timers: Timers
  /** Prints a command of a CI runner on stderr. Only `main` sets it, for `--errors github`. */
  printAnnotation?(line: string): void
  /**
   * At a signal, calls `clean` with the exit status that a shell reports, such as 130. Prints the returned text
   * on stderr. The signal then ends the process.
   */
  onSignal?(clean: (exit: number) => string): void
  /** The first SIGINT calls `act` instead of ending the process. A later SIGINT ends the process. */
  interceptInterrupt?(act: () => void): { release(): void; raise(): Promise<never> }
  exitAfter?(milliseconds: number): void
  reportBugs?(report: (error: unknown) => Promise<number>): () => void
  /**
   * Returns the exit code of the pager, or `undefined` if a signal ended it. The cleanup of the run also ends
   * the pager.
   */
  runPager?(
    command: Pick<ShellCommand, 'text' | 'env' | 'input'>,
    cleanups: RunContext['cleanups'],
  ): Promise<number | undefined>
  limitYoungGeneration?(cleanups: RunContext['cleanups']): void
}

/** `flag`: the long name. `value`: `undefined` if the flag takes no value. */
export interface CommandLineFlag {
  flag: string
  value?: string | undefined
}

export interface SharedFlags {
  raw?: boolean
  dryRun?: boolean
  curl?: boolean
  retryUnknown?: boolean
  header?: string[]
  settings: FlagSettings
  quiet?: boolean
  verbose?: boolean
  errors?: 'json' | 'github'
  report?: string
  color?: string
  pager?: boolean
  /** All flags of the command line in their order, also the command's own flags. */
  given: readonly CommandLineFlag[]
  profile?: string
  stdin?: boolean
  /** If true, an empty stdin is a usage error of a command that reads stdin. */
  failOnEmpty?: boolean
}

export interface RunContext {
  /** Unlimited until the setting `deadline` is read. */
  deadline: Deadline
  /**
   * Synchronous functions that are called whenever the run ends, also by a signal, for example to stop a
   * spinner. A function returns true if it leaves the cursor at the start of a line.
   */
  cleanups: ArraySet<() => unknown>
  secrets: Secrets
  reportData: ReportData
  tracker: WorkTracker
}

export interface Context extends RunContext {
  host: Host
  flags: SharedFlags
  input: InputReader
  output: Output
  messages: MessagePrinter
}

export async function createContext(host: Host, flags: SharedFlags, run: RunContext): Promise<Context> {
  const messages = await createMessagePrinter({ host, flags, redact: run.secrets.redact })
  const { deadline } = run
  const input = new InputReader({ host, flags, deadline, note: messages.note })
  return { ...run, host, flags, input, output: createOutput(host.stdout, deadline), messages }
}

export interface CommandResult {
  failure?: CliError | undefined
  /** Synchronous. Called after parley has written the report. Not called if writing the report failed. */
  lastStep?: (() => void) | undefined
}
