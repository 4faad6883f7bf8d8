import type { Timers } from './client/timer.ts'
import type { Input, Stdin } from './io/input.ts'
import type { Output, StdStream } from './io/output.ts'
import type { ColourChoice, Style } from './io/style.ts'
import type { Secrets } from './secrets.ts'
import type { ProcessInfo } from './settings/folder.ts'
import type { SettingSources } from './settings/resolve.ts'
import type { Exchange } from './wire/exchange.ts'

/** The outside world, as the program is given it. */
export interface Host extends ProcessInfo {
  stdin: Stdin
  stdout: StdStream
  stderr: StdStream
  /** Takes the network's place. */
  exchange?: Exchange | undefined
  /** Throws a usage error where they are not what was typed. */
  checkArguments?(argv: string[]): void
  /** Takes the place of the clock. */
  timers?: Timers | undefined
  /** Has `clean` called when a signal comes, prints what it returns on stderr, and lets the signal end the process. */
  onSignal?(clean: () => string): void
  /** Has `report` called for an error that nothing caught, after which the process ends. */
  onCrash?(report: (error: unknown) => Promise<number>): void
}

/** The flags that every request command has, as they were given. */
export interface SharedFlags {
  profile?: string | undefined
  raw?: boolean | undefined
  dryRun?: boolean | undefined
  curl?: boolean | undefined
  retryUnknown?: boolean | undefined
  header?: string[] | undefined
  quiet?: boolean | undefined
  verbose?: boolean | undefined
  errors?: 'json' | undefined
  color?: ColourChoice | undefined
  stdin?: boolean | undefined
  settings: SettingSources['flags']
}

/** What ends a run early, or may not be shown of it. */
export interface Run {
  /** Leaves nothing behind: stops the spinner, ends a half-written line, removes temporary files. Synchronous. */
  cleanups: Set<() => void>
  secrets: Secrets
  /**
   * Has this said when a signal or a bug ends the run: what has become of what was to be done. Only the last one
   * that was given is asked.
   */
  whenInterrupted(describe: () => string | undefined): void
}

/** What a command is handed. */
export interface Context extends Run {
  host: Host
  flags: SharedFlags
  /** When the run began, in milliseconds since the epoch. */
  start: number
  input: Input
  output: Output
  timers: Timers
  /** For stderr, coloured or not. */
  style: Style
  /** Tells the person something on a line of stderr, escaped, unless `--quiet`. */
  note(line: string): void
  /**
   * The same for what matters to the result or to safety: also with `--quiet`, and with `--errors json` as a line
   * of JSON.
   */
  warn(line: string): void
  /** The same for a line that is laid out, and escaped, already. */
  tell(line: string): void
}
