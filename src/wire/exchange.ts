import type { Deadline } from '../deadline.ts'

export interface HttpRequest {
  method: string
  url: string
  /** Names are unique regardless of case, because HTTP ignores the case of header names. */
  headers: Record<string, string>
  body?: Uint8Array
  deadline?: Deadline | undefined
}

export interface HttpResponse {
  status: number
  statusText: string
  /**
   * Names are in lower case, and values are trimmed. The values of a repeated header are joined by commas.
   */
  headers: Record<string, string>
  /**
   * Reading throws a `CliError` if the response is cut. If the reader stops early (`break`), the connection
   * is closed.
   */
  body: AsyncIterable<Uint8Array>
  /** Closes the connection. The body then ends after the received bytes. */
  close(): void
}

/**
 * Sends a request. Returns the response, whatever its status. Throws a `CliError` of kind `not-sent`,
 * `unknown` or `response` if no response arrives. Calls `onSent` when the first byte is sent.
 */
export type Exchange = (request: HttpRequest, onSent?: () => void) => Promise<HttpResponse>

/**
 * Sizes of the buffer while a body grows. Large steps are cheap, because the system provides memory only
 * when parley writes to it.
 */
const bufferSizesBytes = [64, 256, 1024, 128 * 1024, 512 * 1024].map((kibibytes) => kibibytes * 1024)

export async function readBody(body: AsyncIterable<Uint8Array>, limit = Infinity): Promise<Uint8Array> {
  const collected = createBodyCollector(limit)
  for await (const chunk of body) if (collected.add(chunk) >= limit) break
  return collected.bytes()
}

export async function* limitChunks(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
  createError: () => Error,
): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxBytes) throw createError()
    yield chunk
  }
}

export async function* prependChunk(first: Uint8Array, others: AsyncIterator<Uint8Array>) {
  yield first
  yield* { [Symbol.asyncIterator]: () => others }
}

export function createBodyCollector(limit = Infinity) {
  let whole: Uint8Array = Buffer.alloc(0)
  let size = 0
  return {
    add(chunk: Uint8Array): number {
      if (size === 0 && chunk.length < limit) {
        // A short body is usually one chunk and needs no copy.
        whole = chunk
        size = chunk.length
        return size
      }
      const taken = chunk.length > limit - size ? chunk.subarray(0, limit - size) : chunk
      const needed = size + taken.length
      if (needed > whole.length) {
        const larger = Buffer.allocUnsafeSlow(bufferSizesBytes.find((enough) => enough >= needed) ?? needed)
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

export type BodyCollector = ReturnType<typeof createBodyCollector>
