import type { Transform } from 'node:stream'
import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'
import { notUnderstood } from '../wire/problem/not-understood.ts'

/** The longest body that is accepted, in bytes after decoding. */
const longest = 512 * 1024 * 1024

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
  const decoders = createDecoders(await import('node:zlib'))
  const unknown =
    codings.length > mostCodings ? codings.join(', ') : codings.find((name) => !decoders.has(name))
  if (unknown !== undefined) {
    response.close()
    throw unreadable(`its encoding, ${unknown}, is unknown`)
  }
  yield* codings.reduceRight<Body>((body, coding, index) => {
    // Some proxies repeat the word and leave the body as it is.
    const isRepeated = coding === codings[index + 1]
    return decodeOne(body, (start) =>
      isRepeated && coding === 'gzip' && !startsAsGzip(start) ? undefined : decoders.get(coding)?.(start),
    )
  }, response.body)
}

type Decoding = (body: Body) => Body

/** The decoding for each coding, given the first two bytes of the body. */
const createDecoders = (zlib: Zlib) =>
  new Map<string, (start: Uint8Array) => Decoding>([
    ['gzip', () => (body) => gunzip(body, zlib)],
    ['x-gzip', () => (body) => gunzip(body, zlib)],
    [
      'deflate',
      (start) => (body) =>
        decompress(body, startsAsZlib(start) ? zlib.createInflate() : zlib.createInflateRaw()),
    ],
    ['br', () => (body) => decompress(body, zlib.createBrotliDecompress())],
  ])

const startsAsGzip = ([first, second]: Uint8Array) => first === 0x1f && second === 0x8b

/** Whether it has the zlib head that deflate requires and many servers leave out. */
const startsAsZlib = ([first = 0, second = 0]: Uint8Array) =>
  (first & 15) === 8 && ((first << 8) | second) % 31 === 0

/** Decodes one coding. `choose` gets the first two bytes, and returns `undefined` to leave the body as it is. */
async function* decodeOne(
  body: Body,
  choose: (start: Uint8Array) => Decoding | undefined,
): AsyncGenerator<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]()
  let start: Uint8Array = new Uint8Array()
  let next = await chunks.next()
  for (; !next.done; next = await chunks.next()) {
    start = Buffer.concat([start, next.value])
    if (start.length >= 2) break
  }
  const whole = continued(start, chunks)
  const decoding = start.length > 0 ? choose(start) : undefined
  yield* decoding ? decoding(whole) : whole
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
    throw error instanceof CliError ? error : notCompressed()
  } finally {
    source.destroy()
  }
}

/**
 * Reads the members of gzip, one after another. What follows them and does not begin one is left out, as by gzip(1) and
 * curl; for Node it would be an error, and cost what came before it.
 */
async function* gunzip(body: Body, zlib: Zlib): AsyncGenerator<Uint8Array> {
  const source = createSource(body)
  try {
    do {
      await skipHead(source)
      let sum = 0
      let size = 0
      for await (const piece of source.through(zlib.createInflateRaw())) {
        sum = zlib.crc32(piece, sum)
        size += piece.length
        yield piece
      }
      const end = await source.take(8)
      if (end.readUInt32LE(0) !== sum || end.readUInt32LE(4) !== size % 2 ** 32) throw notCompressed()
    } while (startsAsGzip(await source.peek(2)))
  } finally {
    source.close()
  }
}

/** The parts of a member's head, by the bits that say that they are there (RFC 1952). */
const [hasSum, hasExtra, hasName, hasComment] = [2, 4, 8, 16]

/** A name or a comment has as many bytes at most. */
const longestName = 64 * 1024

async function skipHead({ take }: Source): Promise<void> {
  const head = await take(10)
  const [, , method, flags = 0] = head
  if (!startsAsGzip(head) || method !== 8) throw notCompressed()
  const has = (part = 0) => (flags & part) !== 0
  if (has(hasExtra)) await take((await take(2)).readUInt16LE(0))
  for (const part of [hasName, hasComment]) {
    let length = 0
    while (has(part) && (await take(1))[0] !== 0) if (++length > longestName) throw notCompressed()
  }
  if (has(hasSum)) await take(2)
}

/** A body of which pieces of any size can be read. */
interface Source {
  /** The next bytes. Throws a `CliError` if there are fewer. */
  take(count: number): Promise<Buffer>
  /** The same, which stay; fewer at the body's end. */
  peek(count: number): Promise<Buffer>
  /** Decodes as many of the next bytes as the decoder takes. */
  through(decoder: Transform & { bytesWritten: number }): AsyncGenerator<Uint8Array>
  close(): void
}

function createSource(body: Body): Source {
  const chunks = body[Symbol.asyncIterator]()
  let ahead: Buffer = Buffer.alloc(0)
  /** What is read, and not taken yet. */
  let coming: Promise<IteratorResult<Uint8Array>> | undefined

  async function peek(count: number): Promise<Buffer> {
    while (ahead.length < count) {
      coming ??= chunks.next()
      const { done, value } = await coming
      if (done) break
      coming = undefined
      ahead = Buffer.concat([ahead, value])
    }
    return ahead.subarray(0, count)
  }

  return {
    peek,
    async take(count) {
      const bytes = await peek(count)
      if (bytes.length < count) throw notCompressed()
      ahead = ahead.subarray(count)
      return bytes
    },
    async *through(decoder) {
      /** What the decoder was given, but for what it has long taken. */
      const given: Uint8Array[] = []
      let taken = 0
      let isOver = false
      async function* feed(): AsyncGenerator<Uint8Array> {
        for (;;) {
          if (ahead.length === 0) {
            coming ??= chunks.next()
            const { done, value } = await coming
            // By then the decoder may have its end: what came is for the next.
            if (isOver || done) return
            coming = undefined
            ahead = Buffer.from(value.buffer, value.byteOffset, value.length)
          }
          for (; given[0] && taken + given[0].length <= decoder.bytesWritten; given.shift())
            taken += given[0].length
          const next = ahead
          ahead = Buffer.alloc(0)
          given.push(next)
          yield next
        }
      }
      yield* decompress(feed(), decoder)
      isOver = true
      ahead = Buffer.concat([...given, ahead]).subarray(decoder.bytesWritten - taken)
    },
    close() {
      // Not waited for: it comes after what the body is waited for.
      chunks.return?.().catch(() => {})
    },
  }
}

const notCompressed = () => unreadable('it cannot be decompressed')

const unreadable = (why: string) => notUnderstood(`the answer cannot be read: ${why}`)
