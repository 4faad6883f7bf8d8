import type { Socket } from 'node:net'
import { cachedDataVersionTag, setFlagsFromString } from 'node:v8'
import type { Client } from 'undici'
import UndiciClient from 'undici/lib/dispatcher/client.js'
import { CliError } from '../errors.ts'

export function createUndiciClient(url: URL, socket: Socket): Client {
  let isUsed = false
  return new UndiciClient(url.origin, {
    connect: (_, callback) => {
      // If a server closes each connection at once, undici would open new connections without end. So this
      // function provides only one connection.
      if (isUsed) return callback(new CliError('not-sent', `${url.host}: the connection was closed`), null)
      isUsed = true
      // undici accepts no connection while it calls this function, so the callback runs in a microtask.
      queueMicrotask(() => withoutOptimizedParser(() => callback(null, socket)))
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** Defaults of the flag `--wasm-tiering-budget` before V8 12 and since V8 12. */
const defaults = [1_800_000, 13_000_000]

/**
 * Runs `work`, which loads the WebAssembly parser of undici, without optimising it. V8 would optimise for
 * about 60 ms, and the process could not exit before. The flag is reset at once, because V8 does not use
 * its cache of built-in code while a flag differs from its default. The version tag of the cache shows
 * which value is the default.
 */
export function withoutOptimizedParser(work: () => void): void {
  const tag = cachedDataVersionTag()
  setFlagsFromString('--wasm-tiering-budget=1000000000')
  work()
  for (const budget of defaults) {
    setFlagsFromString(`--wasm-tiering-budget=${budget}`)
    if (cachedDataVersionTag() === tag) return
  }
}
