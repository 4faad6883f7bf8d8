import type { Socket } from 'node:net'

/**
 * What broke a connection, also where Node did not see it: a reset that comes together with the last bytes is
 * read as a plain end.
 */
export function errorOf(socket: Socket): Error | null {
  // Whoever sends an end is still connected after it, whoever resets is not.
  const isPlain = socket.destroyed || !socket.readableEnded || socket.remoteAddress !== undefined
  if (socket.errored || isPlain) return socket.errored
  // Nothing leaves a connection that is gone, but the attempt says how it went. A reset after an end, as of a server
  // that waited long for a slow reader, took nothing away.
  socket.write('\n')
  const error: NodeJS.ErrnoException = socket.errored ?? new Error('reset')
  return error.code === 'EPIPE' ? null : Object.assign(error, { code: 'ECONNRESET' })
}
