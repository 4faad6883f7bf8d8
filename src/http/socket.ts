import type { Socket } from 'node:net'

/** A connection whose reading can be paused without undici's parser noticing. */
export interface PausableSocket {
  socket: Socket
  pause(isPaused: boolean): void
  /** What comes next is the head of one more response. */
  expectAnswer(): void
}

/**
 * When undici pauses its own parser, the parser fails an assertion as the connection ends. So undici never pauses:
 * instead, the paused socket's `read` returns nothing, and the kernel's buffer fills up.
 */
export function makePausable(socket: Socket): PausableSocket {
  let isPaused = false
  const read = socket.read.bind(socket)
  let filter = createInterimFilter()
  socket.read = (size) => {
    if (isPaused) return null
    for (let chunk = read(size); chunk !== null; chunk = read(size)) {
      const filtered = filter(chunk)
      if (filtered) return filtered
    }
    return null
  }
  return {
    socket,
    pause(paused) {
      isPaused = paused
      if (!paused) setImmediate(() => socket.emit('readable'))
    },
    expectAnswer() {
      filter = createInterimFilter()
    },
  }
}

/** How much of an interim response waits at most until it is whole, in bytes. */
const longest = 16 * 1024

/** How an interim response begins. */
const interim = 'HTTP/1.1 1'

/**
 * The function that it returns gets a response chunk by chunk and returns what undici may read, or `undefined` if
 * more must come first. It removes interim responses, because undici fails at a `100 Continue`.
 */
function createInterimFilter(): (chunk: Buffer) => Buffer | undefined {
  let kept: Buffer | undefined = Buffer.alloc(0)

  return (chunk) => {
    if (!kept) return chunk
    let rest = kept.length > 0 ? Buffer.concat([kept, chunk]) : chunk
    while (interim.startsWith(rest.toString('latin1', 0, interim.length))) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0 && rest.length <= longest) {
        kept = rest
        return undefined
      }
      // A change of protocol is the last word in this one: undici has words for it.
      if (end < 0 || rest.toString('latin1', interim.length, interim.length + 2) === '01') break
      rest = rest.subarray(end + 4)
    }
    kept = undefined
    return rest
  }
}

/**
 * What broke a connection, also if Node did not see it: a reset that comes together with the last bytes is
 * read as a plain end.
 */
export function errorOf(socket: Socket): Error | null {
  // After a plain end the socket still has a remote address, after a reset it has none.
  const isPlain = socket.destroyed || !socket.readableEnded || socket.remoteAddress !== undefined
  if (socket.errored || isPlain) return socket.errored
  // Nothing leaves a connection that is gone, but the attempt says how it went. A reset after an end, as of a server
  // that waited long for a slow reader, took nothing away.
  socket.write('\n')
  const error: NodeJS.ErrnoException = socket.errored ?? new Error('reset')
  return error.code === 'EPIPE' ? null : Object.assign(error, { code: 'ECONNRESET' })
}
