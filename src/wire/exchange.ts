export interface HttpRequest {
  method: string
  url: string
  /** Names are as they are sent; no two differ only in case. */
  headers: Record<string, string>
  body?: Uint8Array
  /** Gives the request up, and closes its connection, when it is aborted. */
  signal?: AbortSignal | undefined
}

export interface HttpResponse {
  status: number
  statusText: string
  /** Names in lower case, values without blanks around them; repeated headers are joined by a comma. */
  headers: Record<string, string>
  /** Ends when the response is whole; throws a `CliError` if it breaks off. To leave it early closes the connection. */
  body: AsyncIterable<Uint8Array>
  /** Closes the connection: the body ends with what has come. */
  close(): void
}

/**
 * Sends one request and returns its response, whatever the status. If there is none it throws a `CliError` of
 * kind `not-sent`, `unknown` or `response`. `onSent` is called when the request's first byte leaves.
 */
export type Exchange = (request: HttpRequest, onSent?: () => void) => Promise<HttpResponse>

/** How much memory is reserved, the next size when one is full: unwritten memory costs nothing. Bytes. */
const sizes = [64, 1024, 128 * 1024, 512 * 1024].map((kibibytes) => kibibytes * 1024)

/**
 * Reads a body to its end, or to `limit` bytes, beyond which the rest is left unread: into one piece of memory, without
 * the second copy that joining chunks would make.
 */
export async function readBody(body: AsyncIterable<Uint8Array>, limit = Infinity): Promise<Uint8Array> {
  const collected = collectBody(limit)
  for await (const chunk of body) if (collected.add(chunk) >= limit) break
  return collected.bytes()
}

/** The same for a body that something else reads. */
export function collectBody(limit = Infinity) {
  let whole: Uint8Array = Buffer.alloc(0)
  let size = 0
  return {
    /** Returns how many bytes there are. */
    add(chunk: Uint8Array): number {
      if (size === 0 && chunk.length < limit) {
        // A short body is most often one chunk, and needs no copy.
        whole = chunk
        size = chunk.length
        return size
      }
      const taken = chunk.length > limit - size ? chunk.subarray(0, limit - size) : chunk
      const needed = size + taken.length
      if (needed > whole.length) {
        const larger = Buffer.allocUnsafeSlow(sizes.find((enough) => enough >= needed) ?? needed)
        larger.set(whole.subarray(0, size))
        whole = larger
      }
      whole.set(taken, size)
      size = needed
      return size
    },
    bytes: () => whole.subarray(0, size),
  }
}

export type CollectedBody = ReturnType<typeof collectBody>
