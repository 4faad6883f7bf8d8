import { Writable } from 'node:stream'
import type { StdStream } from '../../src/basic-context.ts'

type Write = (chunk: Buffer, done: (error?: Error) => void) => void

/** Creates a stdout that calls `write` for each chunk. */
export function createStdout(write: Write, isTerminal = false): StdStream {
  const stream = new Writable({ write: (chunk, _encoding, done) => write(chunk, done) })
  return { isTerminal, open: () => stream, writeSync: () => 0 }
}

/** Creates a stdout that accepts some writes. Later writes fail with `code`, or never end without `code`. */
export function createFailingStdout(acceptedWrites: number, code?: string): StdStream {
  let left = acceptedWrites
  return createStdout((_, done) => {
    if (left-- > 0) done()
    else if (code !== undefined) done(Object.assign(new Error(), { code }))
  })
}
