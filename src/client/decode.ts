import type { Transform } from 'node:stream'
import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'

/** The longest body that is taken, in bytes after decoding. */
const longest = 512 * 1024 * 1024

type Body = AsyncIterable<Uint8Array>

/** What servers write where there is no coding: the word for it, or a character set. */
const plain = ['', 'identity', 'none', 'utf-8', 'utf8']

/** How many codings are undone, one after another. */
const most = 5

/**
 * Undoes a `Content-Encoding` that nobody asked for, and bounds the body. A coding that is unknown, or is not what
 * it says, is a failure of the body alone: the status counts whatever the body is.
 */
export function decodeBody(response: HttpResponse): HttpResponse {
  const codings = (response.headers['content-encoding'] ?? '')
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => !plain.includes(coding))
  return { ...response, body: bounded(codings.length === 0 ? response.body : decode(response, codings)) }
}

async function* bounded(body: Body): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > longest) throw notUnderstood('it is longer than 512 MiB')
    yield chunk
  }
}

async function* decode(response: HttpResponse, codings: string[]): AsyncGenerator<Uint8Array> {
  const decoders = createDecoders(await import('node:zlib'))
  const unknown = codings.length > most ? codings.join(', ') : codings.find((name) => !decoders.has(name))
  if (unknown !== undefined) {
    response.close()
    throw notUnderstood(`its encoding, ${unknown}, is unknown`)
  }
  yield* codings.reduceRight<Body>((body, coding, index) => {
    // Proxies write the word once more, and leave the body as it is.
    const isSaidTwice = coding === codings[index + 1]
    return undo(body, (start) =>
      isSaidTwice && coding === 'gzip' && !startsAsGzip(start) ? undefined : decoders.get(coding)?.(start),
    )
  }, response.body)
}

/** By coding, what undoes it in a body that begins with two known bytes. */
const createDecoders = (zlib: typeof import('node:zlib')) =>
  new Map<string, (start: Uint8Array) => Transform>([
    ['gzip', () => zlib.createGunzip()],
    ['x-gzip', () => zlib.createGunzip()],
    ['deflate', (start) => (startsAsZlib(start) ? zlib.createInflate() : zlib.createInflateRaw())],
    ['br', () => zlib.createBrotliDecompress()],
  ])

const startsAsGzip = ([first, second]: Uint8Array) => first === 0x1f && second === 0x8b

/** The head that belongs to deflate, and that many servers leave out. */
const startsAsZlib = ([first = 0, second = 0]: Uint8Array) =>
  (first & 15) === 8 && ((first << 8) | second) % 31 === 0

/** Undoes one coding. `choose` is given the first two bytes, and gives nothing where there is nothing to undo. */
async function* undo(
  body: Body,
  choose: (start: Uint8Array) => Transform | undefined,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  let start: Uint8Array = new Uint8Array()
  let next = await chunks.next()
  for (; !next.done; next = await chunks.next()) {
    start = Buffer.concat([start, next.value])
    if (start.length >= 2) break
  }
  const whole = continued(start, chunks)
  const decoder = start.length > 0 ? choose(start) : undefined
  if (decoder) yield* decompress(whole, decoder)
  else yield* whole
}

async function* continued(start: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield start
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
  } finally {
    await rest.return?.()
  }
}

async function* decompress(body: Body, decoder: Transform): AsyncGenerator<Uint8Array> {
  const { Readable } = await import('node:stream')
  const source = Readable.from(body)
  source.on('error', (error) => decoder.destroy(error))
  try {
    yield* source.pipe(decoder)
  } catch (error) {
    throw error instanceof CliError ? error : notUnderstood('it cannot be decompressed')
  } finally {
    source.destroy()
  }
}

const notUnderstood = (why: string) =>
  new CliError('response', `the answer cannot be read: ${why}`, { sent: 'yes' })
