import { CliError } from '../errors.ts'
import type { HttpResponse } from '../wire/exchange.ts'

/** The longest body that is taken, in bytes after decoding. */
const longest = 512 * 1024 * 1024

/** Undoes a `Content-Encoding` that nobody asked for, and bounds the body. */
export async function decodeBody(response: HttpResponse): Promise<HttpResponse> {
  const encoding = (response.headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  if (encoding === 'identity' || encoding === '') return { ...response, body: bounded(response.body) }
  const zlib = await import('node:zlib')
  const decoders: Record<string, () => import('node:stream').Transform> = {
    gzip: zlib.createGunzip,
    'x-gzip': zlib.createGunzip,
    deflate: zlib.createInflate,
    br: zlib.createBrotliDecompress,
  }
  const decoder = decoders[encoding]
  if (!decoder) {
    response.close()
    throw notUnderstood(`its encoding, ${encoding}, is unknown`)
  }
  return { ...response, body: bounded(decompress(response.body, decoder())) }
}

async function* bounded(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const chunk of body) {
    size += chunk.length
    if (size > longest) throw notUnderstood('it is longer than 512 MiB')
    yield chunk
  }
}

async function* decompress(
  body: AsyncIterable<Uint8Array>,
  decoder: import('node:stream').Transform,
): AsyncGenerator<Uint8Array> {
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
