import type { ActiveSet } from './active-set.ts'
import type { Deadline } from './deadline.ts'
import type { Endings } from './endings.ts'
import type { CliError } from './errors.ts'
import type { Command } from './io/command.ts'
import { Input, type Stdin } from './io/input.ts'
import { createMessages, type Messages } from './io/messages.ts'
import { createOutput, type Output, type StdStream } from './io/output.ts'
import type { Secrets } from './secrets.ts'
import type { Summary } from './summary.ts'
import type { Timers } from './timers.ts'
import type { Exchange } from './wire/exchange.ts'

/** Facts about the process that locate the profile file and its owner. */
export interface ProcessInfo {
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  platform: NodeJS.Platform
  /** The user's id, if files have owners. */
  uid?: number
}

/** Settings from flags, by name, unchecked. */
export type FlagSettings = Partial<Record<string, { value: unknown; flag: string }>>

/** The outside world of the program. */
export interface Host extends ProcessInfo {
  stdin: Stdin
  stdout: StdStream
  stderr: StdStream
  /** Used instead of the network. */
  exchange?: Exchange
  /** Throws a usage error if Node could not decode the arguments. */
  checkArguments?(argv: string[]): void
  timers: Timers
  /**
   * Calls `clean` when a signal arrives, with the exit status that a shell will see, such as 130. Prints the
   * result on stderr and lets the signal end the process.
   */
  onSignal?(clean: (exit: number) => string): void
  /** Calls `act` instead of ending the process at the first SIGINT. Later ones end the process. */
  interceptInterrupt?(act: () => void): Interrupt
  /**
   * Sets the exit code to 1 and calls `report` if the event loop becomes empty, until the returned function
   * is called.
   */
  detectEarlyExit?(report: () => void): () => void
  /** Ends the process after this time, even if stdout and stderr are not drained. Infinity: never. */
  exitAfter?(milliseconds: number): void
  /** Calls `report` for an uncaught error, after which the process ends. */
  onCrash?(report: (error: unknown) => Promise<number>): void
  /**
   * Runs a shell command that has the terminal, with a text as its stdin. Returns its exit code; none if a
   * signal ended it. While it runs, one of `cleanups` ends it.
   */
  runPager?(
    command: Pick<Command, 'text' | 'env' | 'input'>,
    cleanups: RunContext['cleanups'],
  ): Promise<number | undefined>
  /** Limits V8's young generation until the returned function is called. */
  limitYoungGeneration?(): () => void
}

/** A SIGINT that does not end the process at once. */
export interface Interrupt {
  /** Lets the first SIGINT end the process again. */
  release(): void
  /** Ends the process like the SIGINT. Does not resolve. */
  raise(): Promise<never>
}

/** A flag by its long name. `value` is absent for a flag without one. */
export interface TypedFlag {
  flag: string
  value?: string | undefined
}

/** Flags that change or show a request. */
interface RequestFlags {
  raw?: boolean
  dryRun?: boolean
  curl?: boolean
  retryUnknown?: boolean
  header?: string[]
  settings: FlagSettings
}

/** Flags that choose the output besides the result. */
interface MessageFlags {
  quiet?: boolean
  verbose?: boolean
  errors?: 'json' | 'github'
  report?: string
  color?: string
  pager?: boolean
}

/** Flags of every request command, from the command line. */
export interface SharedFlags extends RequestFlags, MessageFlags {
  /** All flags of the command line, including the command's own, in the order written. */
  given: readonly TypedFlag[]
  profile?: string
  stdin?: boolean
  /** For commands that send text: stdin must not be empty if it is read. */
  failOnEmpty?: boolean
}

/** Data that all parts of a run share and extend. */
export interface RunContext {
  /** Infinite until the settings are read. */
  deadline: Deadline
  /**
   * Functions that run at every end of a run: to stop a spinner, end a line, remove a temporary file.
   * Synchronous. A function returns true if it leaves the cursor at the start of a terminal's line.
   */
  cleanups: ActiveSet<() => unknown>
  secrets: Secrets
  summary: Summary
  endings: Endings
}

/** Everything that a command gets. */
export interface Context extends RunContext {
  host: Host
  flags: SharedFlags
  input: Input
  output: Output
  messages: Messages
}

/** Creates the context of a command. */
export async function createContext(host: Host, flags: SharedFlags, run: RunContext): Promise<Context> {
  const messages = await createMessages({ host, flags, redact: run.secrets.redact })
  const { deadline } = run
  const input = new Input({ host, flags, deadline, note: messages.note })
  return { ...run, host, flags, input, output: createOutput(host.stdout, deadline), messages }
}

/** End of a command that has work left after its output and the report are written. */
export interface CommandEnd {
  failure?: CliError | undefined
  /** Synchronous. Skipped if the report could not be written. */
  lastStep?: (() => void) | undefined
}
