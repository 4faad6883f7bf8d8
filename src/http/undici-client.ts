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
      queueMicrotask(() => runWithoutOptimizingParser(() => callback(null, socket)))
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** Defaults of V8's flag `--wasm-tiering-budget`: before version 12, and since version 12. */
const defaults = [1_800_000, 13_000_000]

/**
 * Runs `work`, which loads the WebAssembly parser of undici. V8 would optimise the parser for about 80 ms,
 * and the process could not exit meanwhile, so a high budget prevents the optimisation. Afterwards, the
 * flag gets its default again, because V8 does not use its code cache while a flag differs. The version
 * tag of that cache shows which value is the default.
 */
function runWithoutOptimizingParser(work: () => void): void {
  const tag = cachedDataVersionTag()
  setFlagsFromString('--wasm-tiering-budget=1000000000')
  work()
  for (const budget of defaults) {
    setFlagsFromString(`--wasm-tiering-budget=${budget}`)
    if (cachedDataVersionTag() === tag) return
  }
}
