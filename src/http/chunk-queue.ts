/** How much may wait for a slow reader before the socket is paused, and how little is left when it goes on. Bytes. */
const high = 512 * 1024
const low = 128 * 1024

/** A body between a socket that must not wait and a reader that may be slow. */
export interface ChunkQueue extends AsyncIterable<Uint8Array> {
  push(chunk: Uint8Array): void
  /** Ends the body, with an error where one is given. What was pushed before is still read. */
  close(error?: Error): void
}

export interface Flow {
  /** Called with `true` when too much waits, and with `false` when the reader has caught up. */
  pause(isPaused: boolean): void
  /** Called once, when the reader leaves before the end. */
  leave(): void
}

export function createChunkQueue(flow: Flow): ChunkQueue {
  let chunks: Uint8Array[] = []
  let size = 0
  let isFull = false
  let closed: { error: Error | undefined } | undefined
  let wake = () => {}

  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      while (true) {
        for (const chunk of takeAll()) yield chunk
        if (chunks.length > 0) continue
        if (closed?.error) throw closed.error
        if (closed) return
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    } finally {
      if (!closed) flow.leave()
    }
  }

  function* takeAll(): Generator<Uint8Array> {
    while (chunks.length > 0) {
      const batch = chunks
      chunks = []
      for (const chunk of batch) {
        size -= chunk.length
        if (isFull && size < low) {
          isFull = false
          flow.pause(false)
        }
        yield chunk
      }
    }
  }

  return {
    push(chunk) {
      chunks.push(chunk)
      size += chunk.length
      if (!isFull && size > high) {
        isFull = true
        flow.pause(true)
      }
      wake()
    },
    close(error) {
      closed ??= { error }
      wake()
    },
    [Symbol.asyncIterator]: read,
  }
}
