import type { Socket } from 'node:net'
import { createHeadTidier } from './response-head.ts'

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
  const tidy = createHeadTidier()
  socket.read = (size) => {
    if (isHeld) return null
    for (let chunk = read(size); chunk !== null; chunk = read(size)) {
      const tidied = tidy(chunk)
      if (tidied) return tidied
    }
    return null
  }
  return {
    socket,
    hold(held) {
      isHeld = held
      if (!held) setImmediate(() => socket.emit('readable'))
    },
  }
}
