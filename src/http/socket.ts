import type { Socket } from 'node:net'

export interface PausableSocket {
  socket: Socket
  pause(isPaused: boolean): void
  /** Treats the next received bytes as the headers of a response. Must be called before each request. */
  expectResponse(): void
}

/**
 * Pauses a socket without undici, because the parser of undici fails an assertion if a paused connection
 * ends. `read` of a paused socket returns nothing, so the buffer of the system fills up and the server stops
 * sending.
 */
export function makeSocketPausable(socket: Socket): PausableSocket {
  let isPaused = false
  const read = socket.read.bind(socket)
  let clean = createHeadCleaner()
  socket.read = (size) => {
    if (isPaused) return null
    for (let chunk = read(size); chunk !== null; chunk = read(size)) {
      const cleaned = clean(chunk)
      if (cleaned) return cleaned
    }
    return null
  }
  return {
    socket,
    pause(paused) {
      if (isPaused && !paused) setImmediate(() => socket.emit('readable'))
      isPaused = paused
    },
    expectResponse() {
      clean = createHeadCleaner()
    },
  }
}

const maxHeadBytes = 16 * 1024

const start = 'HTTP/1.'

/**
 * Returns a function that gets a response chunk by chunk. The function returns the bytes for undici, or
 * `undefined` while the headers are incomplete. undici fails at a `100 Continue` and at duplicate
 * `Content-Length` headers, so the function removes both. Bytes that are not HTTP stay unchanged.
 */
function createHeadCleaner(): (chunk: Buffer) => Buffer | undefined {
  let pending: Buffer | undefined = Buffer.alloc(0)

  return (chunk) => {
    if (!pending) return chunk
    let rest = pending.length > 0 ? Buffer.concat([pending, chunk]) : chunk
    while (isStart(rest)) {
      const end = rest.indexOf('\r\n\r\n')
      if (end < 0 && rest.length <= maxHeadBytes && !hasBareLineEnd(rest)) {
        pending = rest
        return undefined
      }
      const head = rest.subarray(0, Math.max(end, 0)).toString('latin1')
      const isInterim = /^HTTP\/1\.\d 1(?!01)\d\d(?: |\r|$)/.test(head)
      if (!isInterim) {
        pending = undefined
        const cleanHead = withOneLength(head)
        return cleanHead === head
          ? rest
          : Buffer.concat([Buffer.from(cleanHead, 'latin1'), rest.subarray(end)])
      }
      rest = rest.subarray(end + 4)
    }
    pending = undefined
    return rest
  }
}

const isStart = (bytes: Buffer) => start.startsWith(bytes.toString('latin1', 0, start.length))

/** undici rejects headers with a line end without CR, so parley does not wait for the end of such headers. */
const hasBareLineEnd = (bytes: Buffer) => /(?:^|[^\r])\n/.test(bytes.toString('latin1'))

function withOneLength(head: string): string {
  const pattern = /\r\ncontent-length:[^\r\n]*/gi
  const lengths = (head.match(pattern) ?? []).flatMap((line) => line.slice(line.indexOf(':') + 1).split(','))
  if (lengths.length < 2) return head
  const [length, ...otherLengths] = new Set(lengths.map((each) => each.trim()))
  if (otherLengths.length > 0) return head
  return `${head.replace(pattern, '')}\r\ncontent-length: ${length}`
}

/**
 * Returns the error of a socket. If a reset arrives with the last bytes, Node reports a normal end, but this
 * function returns an error.
 */
export function findSocketError(socket: Socket): Error | null {
  // A reset socket has no remote address, but a socket that ended normally has one.
  const isPlain = socket.destroyed || !socket.readableEnded || socket.remoteAddress !== undefined
  if (socket.errored || isPlain) return socket.errored
  // This write tests whether the server has reset the connection. The connection has ended, so nothing is
  // sent, but after a reset the write fails. EPIPE means that all data arrived before the reset.
  socket.write('\n')
  const error: NodeJS.ErrnoException = socket.errored ?? new Error('reset')
  return error.code === 'EPIPE' ? null : Object.assign(error, { code: 'ECONNRESET' })
}

export async function waitForSocketEvent(socket: Socket, event: string): Promise<void> {
  let settle = () => {}
  try {
    await new Promise<void>((resolve, reject) => {
      const onClose = () => reject(Object.assign(new Error(), { code: 'ECONNRESET' }))
      settle = () => void socket.off('close', onClose).off('error', reject).off(event, resolve)
      socket.on('close', onClose).on('error', reject).on(event, resolve)
      // Node emits `close` only once, perhaps before this call.
      if (socket.destroyed) onClose()
    })
  } finally {
    settle()
  }
}
