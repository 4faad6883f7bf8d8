import { Writable } from 'node:stream'
import type { StdStream } from '../../src/io/output.ts'

/**
 * Creates a stdout that accepts this number of writes. Later writes fail with the error code. Without a code,
 * they never end.
 */
export function createFailingStdout(accepted: number, code?: string): StdStream {
  let left = accepted
  const stream = new Writable({
    write(_chunk, _encoding, done) {
      if (left-- > 0) done()
      else if (code !== undefined) done(Object.assign(new Error(), { code }))
    },
  })
  return { isTerminal: false, open: () => stream, writeSync: () => 0 }
}
