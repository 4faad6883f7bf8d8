import type { Socket } from 'node:net'
import { createHeadTidier } from './response-head.ts'

/** A connection whose reading can be paused without undici's parser noticing. */
export interface PausableSocket {
  socket: Socket
  pause(isPaused: boolean): void
  /** What comes next is the head of one more answer. */
  expectAnswer(): void
}

/**
 * When undici pauses its own parser, the parser fails an assertion as the connection ends. So undici never pauses:
 * instead, the paused socket's `read` returns nothing, and the kernel's buffer fills up.
 */
export function makePausable(socket: Socket): PausableSocket {
  let isPaused = false
  const read = socket.read.bind(socket)
  let tidy = createHeadTidier()
  socket.read = (size) => {
    if (isPaused) return null
    for (let chunk = read(size); chunk !== null; chunk = read(size)) {
      const tidied = tidy(chunk)
      if (tidied) return tidied
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
      tidy = createHeadTidier()
    },
  }
}
