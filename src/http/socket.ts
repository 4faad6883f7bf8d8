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

/** How much of a response waits at most until its head is whole, in bytes. */
const longest = 16 * 1024

const start = 'HTTP/1.'

/**
 * The function that it returns gets a response chunk by chunk and returns what undici may read, or `undefined` if
 * more must come first. It removes interim responses, because undici fails at a `100 Continue`, and repetitions of one
 * length, because undici takes them for two lengths. Bytes that are not HTTP stay as they are.
 */
function createHeadTidier(): (chunk: Buffer) => Buffer | undefined {
  let kept: Buffer | undefined = Buffer.alloc(0)

  return (chunk) => {
    if (!kept) return chunk
    let rest = kept.length > 0 ? Buffer.concat([kept, chunk]) : chunk
    while (isStart(rest)) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0 && rest.length <= longest && !hasBareLineEnd(rest)) {
        kept = rest
        return undefined
      }
      const head = rest.subarray(0, Math.max(end, 0)).toString('latin1')
      const isInterim = /^HTTP\/1\.\d 1(?!01)\d\d(?: |\r|$)/.test(head)
      if (!isInterim) {
        kept = undefined
        const tidy = withOneLength(head)
        return tidy === head ? rest : Buffer.concat([Buffer.from(tidy, 'latin1'), rest.subarray(end)])
      }
      rest = rest.subarray(end + 4)
    }
    kept = undefined
    return rest
  }
}

/** Whether bytes, as far as they have come, begin a response. */
const isStart = (bytes: Buffer) => start.startsWith(bytes.toString('latin1', 0, start.length))

/** Whether a line ends without CR: undici rejects it, and here the end of such a head would never be found. */
const hasBareLineEnd = (bytes: Buffer) => /(?:^|[^\r])\n/.test(bytes.toString('latin1'))

/** The head with one `Content-Length` in place of several equal ones. */
function withOneLength(head: string): string {
  const lines = head.match(/\r\ncontent-length:[^\r\n]*/gi) ?? []
  const lengths = lines.flatMap((line) => line.slice(line.indexOf(':') + 1).split(','))
  const [length, ...others] = new Set(lengths.map((each) => each.trim()))
  if (lengths.length < 2 || others.length > 0) return head
  return `${lines.reduce((rest, line) => rest.replace(line, ''), head)}\r\ncontent-length: ${length}`
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

/** Waits for an event of a socket. Throws the socket's error if it fails first, or is closed. */
export async function ready(socket: Socket, event: string): Promise<void> {
  let settle = () => {}
  try {
    await new Promise<void>((resolve, reject) => {
      const onClose = () => reject(Object.assign(new Error(), { code: 'ECONNRESET' }))
      settle = () => void socket.off('close', onClose).off('error', reject).off(event, resolve)
      socket.on('close', onClose).on('error', reject).on(event, resolve)
      // It says so only once, and may have done it before.
      if (socket.destroyed) onClose()
    })
  } finally {
    settle()
  }
}
