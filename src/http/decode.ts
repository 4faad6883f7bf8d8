import type { Transform } from 'node:stream'
import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { maxTextLength } from '../wire/json/body-text.ts'
import { createResponseError } from '../wire/problem/problem.ts'

type Body = AsyncIterable<Uint8Array>
type Zlib = typeof import('node:zlib')

/** Values that mean no compression. Some servers send a character set by mistake. */
const noCoding = ['', 'identity', 'none', 'utf-8', 'utf8']

/**
 * Decompresses the body, because some servers compress although parley requests no compression. Reading the
 * body throws a `CliError` if the coding is unknown, the data is invalid, or the decompressed body is
 * longer than `maxBytes`.
 */
export function decompressBody(response: HttpResponse, maxBytes = maxTextLength): HttpResponse {
  const listed = (response.headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => !noCoding.includes(coding))
  // Some proxies send `gzip, gzip` although they encode the body only once.
  const coding = [...new Set(listed)].join(', ')
  return coding === '' ? response : { ...response, body: limitLength(decode(response, coding), maxBytes) }
}

async function* limitLength(body: Body, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw createTooLongError()
    yield chunk
  }
}

async function* decode(response: HttpResponse, coding: string): AsyncGenerator<Uint8Array> {
  const create = decoders.get(coding)
  if (!create) {
    response.close()
    throw unreadableError(`its encoding, ${coding}, is unknown`)
  }
  const chunks = response.body[Symbol.asyncIterator]()
  const { done, value: start } = await chunks.next()
  if (done) return
  const [zlib, { Readable }] = await Promise.all([import('node:zlib'), import('node:stream')])
  const decoder = create(zlib, start[0] ?? 0)
  const source = Readable.from(prepend(start, chunks))
  source.on('error', (error) => decoder.destroy(error))
  try {
    yield* source.pipe(decoder)
  } catch (error) {
    throw error instanceof CliError ? error : unreadableError('it cannot be decompressed')
  } finally {
    source.destroy()
  }
}

const decoders = new Map<string, (zlib: Zlib, first: number) => Transform>([
  ['gzip', (zlib) => zlib.createGunzip()],
  ['x-gzip', (zlib) => zlib.createGunzip()],
  // Many servers omit the zlib header, which begins with a byte whose low bits are 8.
  ['deflate', (zlib, first) => ((first & 15) === 8 ? zlib.createInflate() : zlib.createInflateRaw())],
  ['br', (zlib) => zlib.createBrotliDecompress()],
])

async function* prepend(start: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield start
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
  } finally {
    await rest.return?.()
  }
}

const unreadableError = (why: string) => createResponseError(`the answer cannot be read: ${why}`)

export const createTooLongError = () => unreadableError('it is longer than 512 MiB')
