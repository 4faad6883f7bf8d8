import type { Readable, Writable } from 'node:stream'
import type { ArraySet } from './array-set.ts'
import type { Deadline } from './deadline.ts'
import type { ReportData } from './report-data.ts'
import type { Secrets } from './secrets.ts'
import type { Timers } from './timers.ts'
import type { Exchange } from './wire/exchange.ts'

export interface ProcessInfo {
  env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  platform: NodeJS.Platform
  /** `undefined` on Windows. */
  uid?: number
}

/** The kind `none` stands for a closed stdin, or a device such as /dev/null. */
export interface Stdin {
  kind: 'terminal' | 'pipe' | 'file' | 'folder' | 'none'
  open(): Readable
  /** In raw mode, the terminal delivers each key, including Ctrl-C, without echo. */
  setRaw?(isRaw: boolean): void
  interrupt?(): void
  /**
   * Suspends the process like Ctrl-Z, because a raw terminal delivers Ctrl-Z only as a key. Returns after the
   * user has resumed the process.
   */
  suspend?(): void
}

export interface StdStream {
  isTerminal: boolean
  readonly isClosed?: boolean | undefined
  columns?: number
  rows?: number
  /** For many lines, the stream is faster than `writeSync`. For one line, it is slower. */
  open(): Writable
  /** Writes the whole chunk. `undefined` for a terminal, a pipe or a socket, whose reader may be slow. */
  readonly writeWhole?: ((chunk: Uint8Array | string) => void) | undefined
  /**
   * Writes as much as the descriptor accepts at once, and returns the number of bytes. Returns 0 if the
   * caller must write through the stream, for example because the stream is open.
   */
  writeSync(bytes: Uint8Array): number
}

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
  /**
   * Returns parley's folder in the user's cache folder. Its data may be lost. Returns `undefined` if the folder
   * is not safe. Throws the errors of the file system.
   */
  openCacheFolder?: ((env: ProcessInfo['env']) => string | undefined) | undefined
  exitAfter?(milliseconds: number): void
  reportBugs?(report: (error: unknown) => Promise<number>): () => void
  /**
   * Returns the exit code of the pager, or `undefined` if a signal ended it. The cleanup of the run also ends
   * the pager.
   */
  runPager?(
    command: { text: string; env: ProcessInfo['env']; input?: string },
    cleanups: BasicContext['cleanups'],
  ): Promise<number | undefined>
  limitYoungGeneration?(cleanups: BasicContext['cleanups']): void
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
  /** Values of the settings whose flags are given, by name of the setting. */
  settings: Readonly<Record<string, unknown>>
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

/** The part of a command's context that modules of `io` use. */
export interface BasicContext {
  host: Host
  flags: SharedFlags
  /** Unlimited until the setting `deadline` is read. */
  deadline: Deadline
  /**
   * Synchronous functions that are called whenever the run ends, also by a signal, for example to stop a
   * spinner. A function returns true if it leaves the cursor at the start of a line.
   */
  cleanups: ArraySet<() => unknown>
  secrets: Secrets
  reportData: ReportData
}
