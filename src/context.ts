import type { Deadline } from './deadline.ts'
import type { CliError } from './errors.ts'
import type { ShellCommand } from './io/command.ts'
import { Input, type Stdin } from './io/input.ts'
import { createMessagePrinter, type MessagePrinter } from './io/messages.ts'
import { createOutput, type Output, type StdStream } from './io/output.ts'
import type { Secrets } from './secrets.ts'
import type { ShortLivedSet } from './short-lived-set.ts'
import type { Summary } from './summary.ts'
import type { Timers } from './timers.ts'
import type { Exchange } from './wire/exchange.ts'
import type { WorkTracker } from './work-tracker.ts'

export interface ProcessInfo {
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  platform: NodeJS.Platform
  /** `undefined` on Windows. */
  uid?: number
}

export type FlagSettings = Partial<Record<string, { value: unknown; flag: string }>>

/** Tests replace the streams, timers, network and signals of the process. */
export interface Host extends ProcessInfo {
  stdin: Stdin
  stdout: StdStream
  stderr: StdStream
  /** If omitted, parley uses the network or, for the demo profile, the emulator. */
  exchange?: Exchange
  /** Throws a usage error if Node could not decode the arguments. */
  checkArguments?(argv: string[]): void
  timers: Timers
  /**
   * When a signal arrives, calls `clean` with the exit status that a shell will see, such as 130. Then
   * prints the text that `clean` returned on stderr, and lets the signal end the process.
   */
  onSignal?(clean: (exit: number) => string): void
  /** At the first SIGINT, calls `act` instead of ending the process. A later SIGINT ends the process. */
  interceptInterrupt?(act: () => void): Interrupt
  /**
   * Sets the exit code to 1, and calls `report` if the event loop becomes empty. Calling the returned
   * function cancels both.
   */
  detectEarlyExit?(report: () => void): () => void
  /**
   * Ends the process after this time, even if output on stdout or stderr is unwritten. `Infinity` has no
   * effect.
   */
  exitAfter?(milliseconds: number): void
  /** Calls `report` for an uncaught error, after which the process ends. */
  onCrash?(report: (error: unknown) => Promise<number>): void
  /**
   * Returns the exit code, or `undefined` if a signal ended the command. While the command runs, `cleanups`
   * has a function that ends the command.
   */
  runPager?(
    command: Pick<ShellCommand, 'text' | 'env' | 'input'>,
    cleanups: RunContext['cleanups'],
  ): Promise<number | undefined>
  /** Limits V8's young generation until the run ends. May be called again. */
  limitYoungGeneration?(cleanups: RunContext['cleanups']): void
}

export interface Interrupt {
  /** The next SIGINT ends the process. */
  release(): void
  /** Sends SIGINT to this process. Never resolves. */
  raise(): Promise<never>
}

/** `flag` is the long name. `value` is `undefined` if the flag takes no value. */
export interface TypedFlag {
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
  /** Includes the command's own flags, in the order written. */
  given: readonly TypedFlag[]
  profile?: string
  stdin?: boolean
  /** If the command reads stdin, it throws a usage error for an empty stdin. */
  failOnEmpty?: boolean
}

export interface RunContext {
  /** Infinite until the settings are read. */
  deadline: Deadline
  /**
   * Functions that are called whenever the run ends, for example to stop a spinner or to remove a temporary
   * file. They are synchronous. A function returns true if it leaves the cursor at the start of a line.
   */
  cleanups: ShortLivedSet<() => unknown>
  secrets: Secrets
  summary: Summary
  tracker: WorkTracker
}

export interface Context extends RunContext {
  host: Host
  flags: SharedFlags
  input: Input
  output: Output
  messages: MessagePrinter
}

export async function createContext(host: Host, flags: SharedFlags, run: RunContext): Promise<Context> {
  const messages = await createMessagePrinter({ host, flags, redact: run.secrets.redact })
  const { deadline } = run
  const input = new Input({ host, flags, deadline, note: messages.note })
  return { ...run, host, flags, input, output: createOutput(host.stdout, deadline), messages }
}

/** A command returns this if it must act after parley has written the report. */
export interface CommandEnd {
  failure?: CliError | undefined
  /** Not called if writing the report failed. Synchronous. */
  lastStep?: (() => void) | undefined
}
