import type { ActiveSet } from './active-set.ts'
import type { Calls } from './delivery-state.ts'
import type { Input, Stdin } from './io/input.ts'
import type { Output, StdStream } from './io/output.ts'
import type { Style } from './io/style.ts'
import type { Secrets } from './secrets.ts'
import type { Summary } from './summary.ts'
import type { Limit, Timers } from './timers.ts'
import type { Exchange } from './wire/exchange.ts'

/** What a process knows about itself: it decides where the profile file is, and whose it must be. */
export interface ProcessInfo {
  env: Readonly<Record<string, string | undefined>>
  cwd: string
  platform: NodeJS.Platform
  /** The user's number, if files have owners. */
  uid?: number
}

/** The settings that flags gave, by name, unchecked. */
export type FlagSettings = Partial<Record<string, { value: unknown; flag: string }>>

/** The outside world, as the program sees it. */
export interface Host extends ProcessInfo {
  stdin: Stdin
  stdout: StdStream
  stderr: StdStream
  /** Used instead of the network. */
  exchange?: Exchange
  /** Throws a usage error if the arguments are not what was typed. */
  checkArguments?(argv: string[]): void
  timers: Timers
  /**
   * Has `clean` called when a signal comes, with what a shell will see, such as 130; prints what it returns on stderr, and
   * lets the signal end the process.
   */
  onSignal?(clean: (exit: number) => string): void
  /** Has `act` called in place of the first SIGINT; later ones end the process as ever. */
  interceptInterrupt?(act: () => void): Interrupt
  /**
   * Until the function that it returns is called, the process's exit code is 1, and `report` is called if nothing is left
   * that the process could wait for.
   */
  detectEarlyExit?(report: () => void): () => void
  /** The process ends after so many milliseconds, or Infinity, whatever stdout and stderr have not taken. */
  exitAfter?(milliseconds: number): void
  /** Has `report` called for an error that nothing caught, after which the process ends. */
  onCrash?(report: (error: unknown) => Promise<number>): void
  /** The memory for what lives short grows no more, until the function that it returns is called. */
  limitYoungGeneration?(): () => void
}

/** A SIGINT that does not end the process at once. */
export interface Interrupt {
  /** The first one ends the process again. */
  release(): void
  /** Ends the process as the SIGINT would have; does not resolve. */
  raise(): Promise<never>
}

/** A flag by its long name; the value is absent of one that takes none. */
export interface TypedFlag {
  flag: string
  value?: string | undefined
}

/** The flags that change a request, or show it. */
interface RequestFlags {
  raw?: boolean
  dryRun?: boolean
  curl?: boolean
  retryUnknown?: boolean
  header?: string[]
  settings: FlagSettings
}

/** The flags that choose what is printed beside the result, and where. */
interface MessageFlags {
  quiet?: boolean
  verbose?: boolean
  errors?: 'json' | 'github'
  report?: string
  color?: string
}

/** The flags that every request command has, as they were given. */
export interface SharedFlags extends RequestFlags, MessageFlags {
  /** All flags of this call, a command's own ones too, in the order written. */
  given: readonly TypedFlag[]
  profile?: string
  stdin?: boolean
  /** Of the commands that send text: a stdin that is read has to bring some. */
  failOnEmpty?: boolean
}

/** What any part of a run can add to. */
export interface RunContext {
  /** When it began, by the forward clock. */
  start: number
  limit: Limit
  /**
   * Called when the run ends, in any way: to stop a spinner, end a line, remove a temporary file. Synchronous. One that
   * leaves the cursor of a terminal at the beginning of a line returns true.
   */
  cleanups: ActiveSet<() => unknown>
  /** Called in order once all output is written, the report too. Not called after a signal, or if the report failed. */
  lastSteps: (() => void)[]
  /** Called before each attempt of each request: throws a `CliError` if this run may send nothing more. */
  requireRight?: () => void
  secrets: Secrets
  summary: Summary
  calls: Calls
}

/** What a command gets. */
export interface Context extends RunContext {
  host: Host
  flags: SharedFlags
  input: Input
  output: Output
  timers: Timers
  /** For stderr, coloured or not. */
  style: Style
  /** Breaks a message for stderr between words, if that is a terminal. */
  wrap(message: string): string
  /** Prints a line on stderr, escaped and with parley's name, unless `--quiet`. */
  note(line: string): void
  /**
   * The same for what matters to the result or to safety: printed also with `--quiet`, and with `--errors json` as
   * a line of JSON.
   */
  warn(line: string): void
  /** Prints a line that needs no escaping, unless `--quiet`. */
  printLine(line: string): void
  /** The same for what a run took, at its end: broken between words, as a note is. */
  printFooter(text: string): void
}
