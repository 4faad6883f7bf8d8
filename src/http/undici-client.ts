import type { Socket } from 'node:net'
import { cachedDataVersionTag, setFlagsFromString } from 'node:v8'
import type { Client } from 'undici'
import UndiciClient from 'undici/lib/dispatcher/client.js'
import date from 'undici/lib/util/date.js'
import { CliError } from '../errors.ts'

/** A client of undici that uses only the connection it is given. */
export function createClient(url: URL, socket: Socket): Client {
  let isUsed = false
  return new UndiciClient(url.origin, {
    connect: (_, callback) => {
      // undici would open one connection after another to a server that closes them at once.
      if (isUsed) return callback(new CliError('not-sent', `${url.host}: the connection was closed`), null)
      isUsed = true
      // Not at once: undici is still busy asking, and would not notice the response.
      queueMicrotask(() => withoutTierUp(() => callback(null, socket)))
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** Reads the three dates of HTTP; `undefined` if a date does not exist or has another weekday. */
export const { parseHttpDate } = date

/** V8's defaults for `--wasm-tiering-budget`: before V8 12, and since. */
const defaults = [1_800_000, 13_000_000]

/**
 * Runs work that loads undici's WebAssembly parser, and keeps V8 from optimising the parser: the process could not
 * exit until that is done, about 60 ms later. The flag gets its default back at once, because V8 drops its cache of
 * built-in code while a flag differs; the cache's tag shows which default it was.
 */
export function withoutTierUp(work: () => void): void {
  const tag = cachedDataVersionTag()
  setFlagsFromString('--wasm-tiering-budget=1000000000')
  work()
  for (const budget of defaults) {
    setFlagsFromString(`--wasm-tiering-budget=${budget}`)
    if (cachedDataVersionTag() === tag) return
  }
}
