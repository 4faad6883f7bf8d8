import type { Transform } from 'node:stream'
import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { maxTextLength } from '../wire/json/body-text.ts'
import { createResponseError } from '../wire/problem/problem.ts'

type Body = AsyncIterable<Uint8Array>
type Zlib = typeof import('node:zlib')

/** These values have no effect. Some servers send a character set by mistake. */
const noCoding = ['', 'identity', 'none', 'utf-8', 'utf8']

const maxCodings = 5

/**
 * Limits the body to `maxBytes`. Some servers compress although parley requests no compression. If the coding
 * is unknown or invalid, or the body is too long, reading the body fails. The status stays valid.
 */
export function decodeBody(response: HttpResponse, maxBytes = maxTextLength): HttpResponse {
  const codings = (response.headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => !noCoding.includes(coding))
  return {
    ...response,
    body: limitLength(codings.length === 0 ? response.body : decode(response, codings), maxBytes),
  }
}

async function* limitLength(body: Body, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > maxBytes) throw unreadableError('it is longer than 512 MiB')
    yield chunk
  }
}

async function* decode(response: HttpResponse, codings: string[]): AsyncGenerator<Uint8Array> {
  const zlib = await import('node:zlib')
  if (codings.length > maxCodings || codings.some((name) => !decoders.has(name))) {
    response.close()
    throw unreadableError(`its encoding, ${codings.join(', ')}, is unknown`)
  }
  yield* codings.reduceRight<Body>((body, coding, index) => {
    // Some proxies send `gzip, gzip` although they encode the body only once.
    const isRepeated = coding === 'gzip' && codings[index + 1] === coding
    return decompress(body, (first) =>
      isRepeated && first !== gzipFirstByte ? undefined : decoders.get(coding)?.(zlib, first),
    )
  }, response.body)
}

const decoders = new Map<string, (zlib: Zlib, first: number) => Transform>([
  ['gzip', (zlib) => zlib.createGunzip()],
  ['x-gzip', (zlib) => zlib.createGunzip()],
  // Many servers omit the zlib header. The low bits of its first byte are always 8.
  ['deflate', (zlib, first) => ((first & 15) === 8 ? zlib.createInflate() : zlib.createInflateRaw())],
  ['br', (zlib) => zlib.createBrotliDecompress()],
])

const gzipFirstByte = 0x1f

/** `choose` returns the decoder for a first byte, or `undefined` if the body is not encoded. */
async function* decompress(
  body: Body,
  choose: (first: number) => Transform | undefined,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  const { done, value: start } = await chunks.next()
  if (done) return
  const whole = prepend(start, chunks)
  const decoder = choose(start[0] ?? 0)
  if (!decoder) return yield* whole
  const { Readable } = await import('node:stream')
  const source = Readable.from(whole)
  source.on('error', (error) => decoder.destroy(error))
  try {
    yield* source.pipe(decoder)
  } catch (error) {
    throw error instanceof CliError ? error : unreadableError('it cannot be decompressed')
  } finally {
    source.destroy()
  }
}

async function* prepend(start: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield start
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
  } finally {
    await rest.return?.()
  }
}

const unreadableError = (why: string) => createResponseError(`the answer cannot be read: ${why}`)
