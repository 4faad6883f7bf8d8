import type { Transform } from 'node:stream'
import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { notUnderstood } from '../wire/problem/problem.ts'

/** The longest body that is accepted, in bytes after decoding. */
const longest = 512 * 1024 * 1024

type Body = AsyncIterable<Uint8Array>

/** The words that servers write for no coding: a word for none, or a character set. */
const plain = ['', 'identity', 'none', 'utf-8', 'utf8']

/**
 * Decodes a `Content-Encoding`, although none was asked for, and limits the body's length. A coding that is unknown,
 * one of several, or one that does not fit the body, is a failure of the body alone: the status still counts. So is a body of more than `most` bytes.
 */
export function decodeBody(response: HttpResponse, most = longest): HttpResponse {
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
  const decoders = new Map<string, (firstByte: number) => Transform>([
    ['gzip', () => zlib.createGunzip()],
    ['x-gzip', () => zlib.createGunzip()],
    // Many servers leave out the head of zlib.
    ['deflate', (firstByte) => ((firstByte & 15) === 8 ? zlib.createInflate() : zlib.createInflateRaw())],
    ['br', () => zlib.createBrotliDecompress()],
  ])
  const coding = codings.join(', ')
  const createDecoder = decoders.get(coding)
  if (!createDecoder) {
    response.close()
    throw unreadable(`its encoding, ${coding}, is unknown`)
  }
  const chunks = response.body[Symbol.asyncIterator]()
  const start = await chunks.next()
  if (!start.done) yield* decompress(continued(start.value, chunks), createDecoder(start.value[0] ?? 0))
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
    throw error instanceof CliError ? error : unreadable('it cannot be decompressed')
  } finally {
    source.destroy()
  }
}

const unreadable = (why: string) => notUnderstood(`the answer cannot be read: ${why}`)
