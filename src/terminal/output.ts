import type { Writable } from 'node:stream'
import { CliError, fileProblem, OutputClosed } from '../errors.ts'

/** A place to write to: stdout, or a file in its stead. */
export interface Output {
  readonly isTerminal: boolean
  /** Hands bytes or text on at once; resolves when there is room for more. */
  write(chunk: Uint8Array | string): Promise<void>
  /** Resolves when everything is written. */
  flush(): Promise<void>
}

/** A stream as the program is given it. */
export type OutputStream = Writable & { isTTY?: boolean; columns?: number }

/**
 * Writes to stdout. Throws `OutputClosed` when its reader has gone, and a `CliError` of kind `file` when it
 * cannot be written for another reason.
 */
export function createOutput(stream: OutputStream): Output {
  let failure: NodeJS.ErrnoException | undefined
  let last: Promise<void> = Promise.resolve()
  stream.on('error', (error) => {
    failure ??= error
  })

  function check(): void {
    if (failure?.code === 'EPIPE' || failure?.code === 'ERR_STREAM_DESTROYED') throw new OutputClosed()
    if (failure) throw new CliError('file', `stdout: ${fileProblem(failure)}`)
  }

  return {
    isTerminal: stream.isTTY === true,
    async write(chunk) {
      check()
      if (chunk.length === 0) return
      let hasRoom = true
      last = new Promise((resolve) => {
        hasRoom = stream.write(chunk, (error) => {
          if (error) failure ??= error
          resolve()
        })
      })
      if (!hasRoom) await last
      check()
    },
    async flush() {
      await last
      check()
    },
  }
}
