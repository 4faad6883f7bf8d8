import type { Transform } from 'node:stream'
import { CliError, hasErrorCode } from '../errors.ts'
import { type HttpResponse, limitChunks, prependChunk } from '../wire/exchange.ts'
import { maxTextLength } from '../wire/json/text-limit.ts'
import { createResponseError } from '../wire/problem/problem.ts'

type Zlib = typeof import('node:zlib')

/** Values of `Content-Encoding` for a plain body. Some servers send a character set there by mistake. */
const noCoding = ['', 'identity', 'none', 'utf-8', 'utf8']

/**
 * Decompresses the body, because some servers compress although parley requests no compression. Reading the
 * body throws a `CliError` for an unknown coding, for invalid data, or over `maxBytes` of decompressed data.
 * If decompressing fails at the start, the reader gets the received bytes before the failure, because they
 * may be a paid answer.
 */
export function decompressBody(response: HttpResponse, maxBytes = maxTextLength): HttpResponse {
  const listed = (response.headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => !noCoding.includes(coding))
  // Some proxies send `gzip, gzip` although they encode the body only once, so repeated names are dropped.
  const coding = [...new Set(listed)].join(', ')
  return coding === ''
    ? response
    : { ...response, body: limitChunks(decode(response, coding), maxBytes, createAnswerTooLongError) }
}

async function* decode({ body }: HttpResponse, coding: string): AsyncGenerator<Uint8Array> {
  const create = decoders.get(coding)
  if (!create) {
    yield* body
    throw unreadableError(`its encoding, ${coding}, is unknown`)
  }
  const chunks = body[Symbol.asyncIterator]()
  const first = await chunks.next()
  if (first.done) return
  const [zlib, { Readable }] = await Promise.all([import('node:zlib'), import('node:stream')])
  const decoder = create(zlib, first.value[0] ?? 0)
  const source = Readable.from(prependChunk(first.value, chunks))
  /**
   * Compressed chunks, which the reader gets if decompressing fails. `undefined` after the first decompressed
   * data.
   */
  let received: Uint8Array[] | undefined = []
  const keep = (chunk: Uint8Array) => received?.push(chunk)
  source.on('error', (error) => decoder.destroy(error)).pipe(decoder)
  source.on('data', keep)
  try {
    for await (const chunk of decoder) {
      received = undefined
      yield chunk
    }
  } catch (error) {
    source.pause().off('data', keep)
    if (received) {
      yield* received
      yield* source
    }
    throw toUnreadableError(error)
  } finally {
    source.destroy()
    void chunks.return?.()
  }
}

const decoders = new Map<string, (zlib: Zlib, first: number) => Transform>([
  ['gzip', (zlib) => zlib.createGunzip()],
  ['x-gzip', (zlib) => zlib.createGunzip()],
  // Many servers omit the zlib header, which begins with a byte whose low bits are 8.
  ['deflate', (zlib, first) => ((first & 15) === 8 ? zlib.createInflate() : zlib.createInflateRaw())],
  ['br', (zlib) => zlib.createBrotliDecompress()],
])

const unreadableError = (why: string) => createResponseError(`the answer cannot be read: ${why}`)

export const createAnswerTooLongError = () => unreadableError('it is longer than 512 MiB')

function toUnreadableError(error: unknown): CliError {
  if (error instanceof CliError) return error
  return hasErrorCode(error, 'Z_BUF_ERROR')
    ? new CliError('response', 'the answer broke off: its compressed data has no end', { isCutOff: true })
    : unreadableError('it cannot be decompressed')
}
