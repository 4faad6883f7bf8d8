import type { Socket } from 'node:net'

/** A connection whose reading can be held up without its parser noticing. */
export interface HeldSocket {
  socket: Socket
  hold(isHeld: boolean): void
}

/**
 * undici's parser, once paused, fails an assertion when the connection ends. So it is never paused: while the
 * socket is held, its `read` has nothing to give, and the kernel's buffer fills up.
 */
export function makeHoldable(socket: Socket): HeldSocket {
  let isHeld = false
  const read = socket.read.bind(socket)
  socket.read = (size) => (isHeld ? null : read(size))
  return {
    socket,
    hold(held) {
      isHeld = held
      if (!held) setImmediate(() => socket.emit('readable'))
    },
  }
}
