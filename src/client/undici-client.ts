import type { Client } from 'undici'
import UndiciClient from 'undici/lib/dispatcher/client.js'
import { failure } from './exchange-problem.ts'
import type { HeldSocket } from './hold.ts'
import { withoutTierUp } from './tier-up.ts'

/** A client of undici's that uses one connection, which is ours. */
export function createClient(url: URL, opening: Promise<HeldSocket>): Client {
  let isOpened = false
  return new UndiciClient(url.origin, {
    connect: (_, callback) => {
      // undici would open one connection after another to a server that closes them at once.
      if (isOpened) return callback(failure('nowhere', url, 'the connection was closed'), null)
      opening.then(
        ({ socket }) => {
          isOpened = true
          withoutTierUp(() => callback(null, socket))
        },
        (error: Error) => callback(error, null),
      )
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}
