import type { Deadline } from './deadline.ts'
import type { Endings } from './endings.ts'
import type { CliError } from './errors.ts'
import type { Command } from './io/command.ts'
import { Input, type Stdin } from './io/input.ts'
import { createMessages, type Messages } from './io/messages.ts'
import { createOutput, type Output, type StdStream } from './io/output.ts'
import type { Secrets } from './secrets.ts'
import type { ShortLivedSet } from './short-lived-set.ts'
import type { Summary } from './summary.ts'
import type { Timers } from './timers.ts'
import type { Exchange } from './wire/exchange.ts'

/** Facts about the process that parley needs to find the profile file and to check its owner. */
export interface ProcessInfo {
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  platform: NodeJS.Platform
  /** The user's id, if files have owners. */
  uid?: number
}

/** Unchecked settings from flags, by the name of the setting. */
export type FlagSettings = Partial<Record<string, { value: unknown; flag: string }>>

/** The outside world of the program. */
export interface Host extends ProcessInfo {
  stdin: Stdin
  stdout: StdStream
  stderr: StdStream
  /** Replaces the network. */
  exchange?: Exchange
  /** Throws a usage error if Node could not decode the arguments. */
  checkArguments?(argv: string[]): void
  timers: Timers
  /**
   * Calls `clean` when a signal arrives, with the exit status that a shell will see, such as 130. Prints the
   * result on stderr and lets the signal end the process.
   */
  onSignal?(clean: (exit: number) => string): void
  /** At the first SIGINT, calls `act` instead of ending the process. A later SIGINT ends the process. */
  interceptInterrupt?(act: () => void): Interrupt
  /**
   * Sets the exit code to 1 and calls `report` if the event loop becomes empty, until the returned function
   * is called.
   */
  detectEarlyExit?(report: () => void): () => void
  /**
   * Ends the process after this time, even if stdout and stderr are not drained. `Infinity` has no effect.
   */
  exitAfter?(milliseconds: number): void
  /** Calls `report` for an uncaught error, after which the process ends. */
  onCrash?(report: (error: unknown) => Promise<number>): void
  /**
   * Runs a shell command in the foreground of the terminal. Returns its exit code, or `undefined` if a signal
   * ended the command. While the command runs, a member of `cleanups` ends it.
   */
  runPager?(
    command: Pick<Command, 'text' | 'env' | 'input'>,
    cleanups: RunContext['cleanups'],
  ): Promise<number | undefined>
  /** Limits V8's young generation until the end of the run. May be called again. */
  limitYoungGeneration?(cleanups: RunContext['cleanups']): void
}

/** A SIGINT that does not end the process at once. */
export interface Interrupt {
  /** Lets the first SIGINT end the process again. */
  release(): void
  /** Ends the process as the intercepted SIGINT would have done. The promise never resolves. */
  raise(): Promise<never>
}

/** A flag of the command line, by its long name. `value` is `undefined` if the flag takes no value. */
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

/** Flags that control all output except the result. */
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
  /** For commands that send text: if stdin is read, it must not be empty. */
  failOnEmpty?: boolean
}

/** Data that all parts of a run share and extend. */
export interface RunContext {
  /** Infinite until the settings are read. */
  deadline: Deadline
  /**
   * Functions that run whenever the run ends, for example to stop a spinner or to remove a temporary file.
   * They are synchronous. A function returns true if it leaves the cursor at the start of a line.
   */
  cleanups: ShortLivedSet<() => unknown>
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

/** Result of a command that has a last step after its output and the report are written. */
export interface CommandEnd {
  failure?: CliError | undefined
  /** Runs synchronously, unless the report could not be written. */
  lastStep?: (() => void) | undefined
}
