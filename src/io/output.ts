import type { StdStream } from '../basic-context.ts'
import type { Deadline } from '../deadline.ts'
import { CliError, hasErrorCode, OutputClosedError, toFileFailure } from '../errors.ts'
import { yieldToSignals } from '../timers.ts'

export interface Output {
  readonly isTerminal: boolean
  /** True for stdout after the first write. */
  readonly hasBegun?: boolean
  /** Resolves when the output accepts more text. */
  write(chunk: Uint8Array | string): Promise<void>
  flush(): Promise<void>
}

/**
 * Methods throw `OutputClosedError` if the reader has closed stdout. They throw a `CliError` of kind `file` for
 * any other error, or if stdout does not accept the output by the deadline.
 */
export function createOutput(stdout: StdStream, deadline?: Deadline): Output {
  let failure: Error | undefined
  let last: Promise<void> | undefined
  let write: ((chunk: Uint8Array | string) => Promise<void> | undefined | void) | undefined
  function begin(): NonNullable<typeof write> {
    requireOpenStdout(stdout)
    if (stdout.writeWhole) return stdout.writeWhole
    const stream = stdout.open().on('error', (error) => {
      failure ??= error
    })
    return (chunk) => {
      let resolve = () => {}
      last = new Promise((settle) => {
        resolve = settle
      })
      return stream.write(chunk, createCallback(resolve)) ? undefined : waitUntilWritten()
    }
  }

  async function throwFailure(): Promise<void> {
    const error = toWriteFailure(failure)
    if (error instanceof OutputClosedError) await yieldToSignals()
    throw error
  }

  async function waitUntilWritten(): Promise<void> {
    if (!deadline || !last) return last
    return deadline.race(last, () => {
      failure ??= createWriteTimeoutError('stdout')
      return toWriteFailure(failure)
    })
  }

  /**
   * Defined outside of `write`, because a closure in `write` would keep its chunk in memory after the stream
   * has written it.
   */
  const createCallback = (resolve: () => void) => (error?: Error | null) => {
    if (error) failure ??= error
    resolve()
  }

  return {
    get isTerminal() {
      return stdout.isTerminal
    },
    get hasBegun() {
      return write !== undefined
    },
    async write(chunk) {
      if (failure) await throwFailure()
      if (chunk.length === 0) return
      write ??= begin()
      try {
        await write(chunk)
      } catch (error) {
        failure ??= error as Error
      }
      if (failure) await throwFailure()
    },
    async flush() {
      await waitUntilWritten()
      if (failure) await throwFailure()
    },
  }
}

export function ignoreClosedReader(output: Output): Output {
  let isReaderClosed = false
  const attempt = async (act: () => Promise<void>) => {
    if (isReaderClosed) return
    await act().catch((error) => {
      if (!(error instanceof OutputClosedError)) throw error
      isReaderClosed = true
    })
  }
  return {
    isTerminal: output.isTerminal,
    write: (chunk) => attempt(() => output.write(chunk)),
    flush: () => attempt(() => output.flush()),
  }
}

export function requireOpenStdout(stdout: StdStream, details?: { consequence: string }): void {
  if (stdout.isClosed) throw new CliError('file', 'stdout: it was closed when parley started', details)
}

export async function writeTextToStdout(stdout: StdStream, text: string, deadline?: Deadline): Promise<void> {
  // Lets a pending signal end the process first, because a blocking write would delay the signal.
  await yieldToSignals()
  requireOpenStdout(stdout)
  const bytes = Buffer.from(text)
  let written = 0
  try {
    written = stdout.writeSync(bytes)
  } catch (error) {
    throw toWriteFailure(error)
  }
  if (written === bytes.length) return
  const output = createOutput(stdout, deadline)
  await output.write(bytes.subarray(written))
  await output.flush()
}

/** Error codes of a write to a closed pipe. Windows uses `EOF`. */
const closedReaderCodes = ['EPIPE', 'EOF', 'ERR_STREAM_DESTROYED']

export const createWriteTimeoutError = (name: string): CliError =>
  new CliError('file', `${name}: the deadline passed before all output was written`, { deadline: true })

const toWriteFailure = (error: unknown): Error =>
  hasErrorCode(error, ...closedReaderCodes) ? new OutputClosedError() : toFileFailure(error, 'stdout')
