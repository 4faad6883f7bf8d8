import type { Writable } from 'node:stream'
import { asFileError, CliError, hasCode, OutputClosed } from '../errors.ts'
import { type Limit, type Timers, withTimeLimit } from '../timers.ts'

/** What a command writes to: stdout, or a file instead. */
export interface Output {
  readonly isTerminal: boolean
  /** Of stdout: whether anything was written. */
  readonly hasBegun?: boolean
  /** Writes bytes or text at once; resolves when there is room for more. */
  write(chunk: Uint8Array | string): Promise<void>
  /** Resolves when everything is written. */
  flush(): Promise<void>
}

/** stdout or stderr of the process: file descriptor 1 or 2. */
export interface StdStream {
  isTerminal: boolean
  /** The real path of a regular file. */
  readonly file?: string | undefined
  /** It was closed when the process started: nothing can be written. */
  readonly isClosed?: boolean | undefined
  /** Of a terminal: how wide it is. */
  columns?: number
  /** Slower than `writeSync` for one line: for those who write much. */
  open(): Writable
  /** Writes what can be written at once, and returns how many bytes that was; none if the stream is open. */
  writeSync(bytes: Uint8Array): number
}

/** Until when what is written is waited for. */
export interface WriteLimit {
  limit: Limit
  timers: Timers
}

/**
 * Writes to stdout. Throws `OutputClosed` when its reader has gone, and a `CliError` of kind `file` when it
 * cannot be written for another reason, also if it has not taken everything by the deadline.
 */
export function createOutput(stdout: StdStream, until?: WriteLimit): Output {
  let failure: Error | undefined
  let last: Promise<void> = Promise.resolve()
  let stream: Writable | undefined
  const openWatched = () =>
    stdout.open().on('error', (error) => {
      failure ??= error
    })

  function check(): void {
    if (failure) throw asFailure(failure)
  }

  async function written(): Promise<void> {
    if (!until) return last
    return withTimeLimit(last, { time: until.limit.deadline, timers: until.timers }, () => {
      failure ??= writeTimedOut('stdout')
      return asFailure(failure)
    })
  }

  return {
    get isTerminal() {
      return stdout.isTerminal
    },
    get hasBegun() {
      return stream !== undefined
    },
    async write(chunk) {
      check()
      if (chunk.length === 0) return
      stream ??= openWatched()
      const target = stream
      let hasRoom = true
      last = new Promise((resolve) => {
        hasRoom = target.write(chunk, (error) => {
          if (error) failure ??= error
          resolve()
        })
      })
      if (!hasRoom) await written()
      check()
    },
    async flush() {
      await written()
      check()
    },
  }
}

/** A reader of stdout that goes away ends the printing, not the work. */
export function ignoreClosedReader(output: Output): Output {
  let isOver = false
  const attempt = async (act: () => Promise<void>) => {
    if (isOver) return
    await act().catch((error) => {
      if (!(error instanceof OutputClosed)) throw error
      isOver = true
    })
  }
  return {
    isTerminal: output.isTerminal,
    write: (chunk) => attempt(() => output.write(chunk)),
    flush: () => attempt(() => output.flush()),
  }
}

/** Writes a short text, such as help. Throws as an `Output` does. */
export async function writeText(stdout: StdStream, text: string, until?: WriteLimit): Promise<void> {
  // A signal that has come ends the run before a write that may block, in which nothing would hear of it.
  await new Promise(setImmediate)
  const bytes = Buffer.from(text)
  let written = 0
  try {
    written = stdout.writeSync(bytes)
  } catch (error) {
    throw asFailure(error)
  }
  if (written === bytes.length) return
  const output = createOutput(stdout, until)
  await output.write(bytes.subarray(written))
  await output.flush()
}

/** `EOF` is what Windows may say of a pipe that nobody reads. */
const gone = ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED']

export const writeTimedOut = (name: string): CliError =>
  new CliError('file', `${name}: the deadline passed before all of it was written`, { deadline: true })

const asFailure = (error: unknown): Error =>
  hasCode(error, ...gone) ? new OutputClosed() : asFileError(error, 'stdout')
