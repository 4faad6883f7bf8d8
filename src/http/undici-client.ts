import type { Socket } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import type { Client } from 'undici'
import symbols from 'undici/lib/core/symbols.js'
import UndiciClient from 'undici/lib/dispatcher/client.js'
import { CliError } from '../errors.ts'

type ParsedSocket = Socket & { [symbols.kParser]?: { execute(bytes: Uint8Array): void } }

export function createUndiciClient(url: URL, socket: Socket): Client {
  let isUsed = false
  return new UndiciClient(url.origin, {
    connect: (_, callback) => {
      // If a server closes each connection at once, undici would open new connections without end. So this
      // function provides only one connection.
      if (isUsed) return callback(new CliError('not-sent', `${url.host}: the connection was closed`), null)
      isUsed = true
      // undici accepts a connection only after this function has returned, so the callback runs in a
      // microtask.
      queueMicrotask(() => runWithoutOptimizingParser(socket, () => callback(null, socket)))
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/**
 * Runs `connect`, which loads the WebAssembly parser of undici, and stops V8 from optimising the parser. The
 * optimisation takes 80 ms and 25 MiB, and the process cannot exit meanwhile. V8 decides on it when it
 * compiles a function, before the first call. So parley calls the parser without bytes while a filter allows
 * V8 to optimise only function 0, which is an import without code. V8 rejects its code cache while a flag is
 * changed, so parley then restores the default.
 */
function runWithoutOptimizingParser(socket: ParsedSocket, connect: () => void): void {
  setFlagsFromString('--wasm-tier-up-filter=0')
  connect()
  socket[symbols.kParser]?.execute(Buffer.alloc(0))
  setFlagsFromString('--wasm-tier-up-filter=-1')
}
