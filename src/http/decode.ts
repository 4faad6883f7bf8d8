import type { Transform } from 'node:stream'
import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { longestText } from '../wire/json/body-text.ts'
import { notUnderstood } from '../wire/problem/problem.ts'

type Body = AsyncIterable<Uint8Array>
type Zlib = typeof import('node:zlib')

/** The words that servers write for no coding: a word for none, or a character set. */
const plain = ['', 'identity', 'none', 'utf-8', 'utf8']

/** How many codings are decoded, one after another. */
const mostCodings = 5

/**
 * Decodes a `Content-Encoding`, although none was asked for, and limits the body's length. A coding that is unknown,
 * or does not fit the body, is a failure of the body alone: the status still counts. So is a body of more than `most` bytes.
 */
export function decodeBody(response: HttpResponse, most = longestText): HttpResponse {
  const codings = (response.headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => !plain.includes(coding))
  return {
    ...response,
    body: bounded(codings.length === 0 ? response.body : decode(response, codings), most),
  }
}

async function* bounded(body: Body, most: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > most) throw unreadable('it is longer than 512 MiB')
    yield chunk
  }
}

async function* decode(response: HttpResponse, codings: string[]): AsyncGenerator<Uint8Array> {
  const zlib = await import('node:zlib')
  const unknown =
    codings.length > mostCodings ? codings.join(', ') : codings.find((name) => !decoders.has(name))
  if (unknown !== undefined) {
    response.close()
    throw unreadable(`its encoding, ${unknown}, is unknown`)
  }
  yield* codings.reduceRight<Body>((body, coding, index) => {
    // Some proxies repeat the word and leave the body as it is.
    const isRepeated = coding === 'gzip' && codings[index + 1] === coding
    return decompress(body, (start) =>
      isRepeated && !startsAsGzip(start) ? undefined : decoders.get(coding)?.(zlib, start),
    )
  }, response.body)
}

/** What decodes each coding, given the first two bytes of the body. */
const decoders = new Map<string, (zlib: Zlib, start: Uint8Array) => Transform>([
  ['gzip', (zlib) => zlib.createGunzip()],
  ['x-gzip', (zlib) => zlib.createGunzip()],
  ['deflate', (zlib, start) => (startsAsZlib(start) ? zlib.createInflate() : zlib.createInflateRaw())],
  ['br', (zlib) => zlib.createBrotliDecompress()],
])

const startsAsGzip = ([first, second]: Uint8Array) => first === 0x1f && second === 0x8b

/** Whether it has the zlib head that deflate requires and many servers leave out. */
const startsAsZlib = ([first = 0, second = 0]: Uint8Array) =>
  (first & 15) === 8 && ((first << 8) | second) % 31 === 0

/** Decodes one coding. `choose` gets the first two bytes, and returns `undefined` to leave the body as it is. */
async function* decompress(
  body: Body,
  choose: (start: Uint8Array) => Transform | undefined,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  let start: Uint8Array = new Uint8Array()
  for (let next = await chunks.next(); !next.done; next = await chunks.next()) {
    start = Buffer.concat([start, next.value])
    if (start.length >= 2) break
  }
  const whole = continued(start, chunks)
  const decoder = start.length > 0 ? choose(start) : undefined
  if (!decoder) return yield* whole
  const { Readable } = await import('node:stream')
  const source = Readable.from(whole)
  source.on('error', (error) => decoder.destroy(error))
  try {
    yield* source.pipe(decoder)
  } catch (error) {
    throw error instanceof CliError ? error : unreadable('it cannot be decompressed')
  } finally {
    source.destroy()
  }
}

async function* continued(start: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield start
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
  } finally {
    await rest.return?.()
  }
}

const unreadable = (why: string) => notUnderstood(`the answer cannot be read: ${why}`)
