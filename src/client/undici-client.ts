import type { Socket } from 'node:net'
import type { Client } from 'undici'
import UndiciClient from 'undici/lib/dispatcher/client.js'
import { failure } from './exchange-problem.ts'
import { withoutTierUp } from './tier-up.ts'

/** A client of undici's that uses one connection, which is ours. */
export function createClient(url: URL, socket: Socket): Client {
  let isUsed = false
  return new UndiciClient(url.origin, {
    connect: (_, callback) => {
      // undici would open one connection after another to a server that closes them at once.
      if (isUsed) return callback(failure('nowhere', url, 'the connection was closed'), null)
      isUsed = true
      // Not at once: undici, still at work on asking, would not notice.
      queueMicrotask(() => withoutTierUp(() => callback(null, socket)))
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}
