import type { Socket } from 'node:net'
import type { Client } from 'undici'
import UndiciClient from 'undici/lib/dispatcher/client.js'
import date from 'undici/lib/util/date.js'
import { failure } from './exchange-problem.ts'
import { withoutTierUp } from './tier-up.ts'

/** A client of undici that uses only the connection it is given. */
export function createClient(url: URL, socket: Socket): Client {
  let isUsed = false
  return new UndiciClient(url.origin, {
    connect: (_, callback) => {
      // undici would open one connection after another to a server that closes them at once.
      if (isUsed) return callback(failure('nowhere', url, 'the connection was closed'), null)
      isUsed = true
      // Not at once: undici is still busy asking, and would not notice the answer.
      queueMicrotask(() => withoutTierUp(() => callback(null, socket)))
    },
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** Reads the three dates of HTTP; `undefined` where a date does not exist or has another weekday. */
export const { parseHttpDate } = date
