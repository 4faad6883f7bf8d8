import { Writable } from 'node:stream'
import type { StdStream } from '../../src/basic-context.ts'

/** Creates a stdout that accepts some writes. Later writes fail with `code`, or never end without `code`. */
export function createFailingStdout(acceptedWrites: number, code?: string): StdStream {
  let left = acceptedWrites
  const stream = new Writable({
    write(_chunk, _encoding, done) {
      if (left-- > 0) done()
      else if (code !== undefined) done(Object.assign(new Error(), { code }))
    },
  })
  return { isTerminal: false, open: () => stream, writeSync: () => 0 }
}
