import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { CliError } from '../../src/errors.ts'
import { decompressBody } from '../../src/http/decompress.ts'
import { readBody } from '../../src/wire/exchange.ts'
import { answering, run } from '../harness/run.ts'

const text = '{"said":"hello, hello, hello, hello, hello"}\n'
const twice = Buffer.concat([gzipSync('{"said":'), gzipSync('"hello"}\n')])

/** Runs `api` with a body in chunks of `size` bytes, and returns what it prints. */
async function runApi(coding: string | undefined, body: Uint8Array, size = body.length) {
  const pieces: Uint8Array[] = []
  for (let start = 0; start < body.length; start += size) pieces.push(body.subarray(start, start + size))
  const headers: Record<string, string> = coding === undefined ? {} : { 'content-encoding': coding }
  const exchange = answering(pieces, { headers })
  const { code, out, err } = await run(['api', 'agents', '/v1/x'], { exchange })
  return { code, out, err }
}

type Row = [name: string, coding: string | undefined, body: Uint8Array, out?: string]

test.each<Row>([
  ...[undefined, '', ' None ', 'utf-8', 'UTF8', ',identity,,'].map(
    (word): Row => ['a plain body', word, Buffer.from(text)],
  ),
  ...['GZip', 'x-gzip', 'identity, gzip'].map((word): Row => ['gzip', word, gzipSync(text)]),
  ['two gzip members', 'gzip', twice, '{"said":"hello"}\n'],
  ['gzip followed by zeros', 'gzip', Buffer.concat([gzipSync(text), Buffer.alloc(9)])],
  ['brotli', 'br', brotliCompressSync(text)],
  ['deflate', 'deflate', deflateSync(text)],
  ['raw deflate', 'deflate', deflateRawSync(text)],
  ['raw deflate', 'deflate', deflateRawSync(text, { level: 0 })],
  // With this length, the bytes look like deflate with a header.
  ['raw deflate', 'deflate', deflateRawSync('x'.repeat(23), { level: 0 }), 'x'.repeat(23)],
  // Some proxies repeat the name without encoding the body twice.
  ['a body that is gzipped once', 'gzip, gzip', gzipSync(text)],
])('R30, R60, R61, R62: parley decodes %s with Content-Encoding %j', async (_, coding, body, out = text) => {
  for (const size of [body.length, 1, 3])
    expect(await runApi(coding, body, size)).toEqual({ code: 0, out, err: '' })
})

test.each(['gzip', 'br', 'deflate', 'identity'])('R64: parley decodes an empty %s body', async (coding) => {
  expect(await runApi(coding, new Uint8Array())).toMatchObject({ code: 0, out: '' })
})

const noEnd = 'broke off: its compressed data has no end'
const isDamaged = 'cannot be read: it cannot be decompressed'

test.each<[coding: string, body: Uint8Array, why: string]>([
  ['zst', gzipSync(text), 'cannot be read: its encoding, zst, is unknown'],
  ['gzip, zst', gzipSync(text), 'cannot be read: its encoding, gzip, zst, is unknown'],
  ['constructor', gzipSync(text), 'cannot be read: its encoding, constructor, is unknown'],
  ['gzip', Buffer.from(text), isDamaged],
  ['gzip', gzipSync(text).subarray(0, -1), noEnd],
  ['gzip', gzipSync(text).subarray(0, 5), noEnd],
  // The last byte is a part of the length.
  ['gzip', Buffer.concat([gzipSync(text).subarray(0, -1), Buffer.of(9)]), isDamaged],
  ['gzip', Buffer.concat([gzipSync(text), gzipSync(text).subarray(0, -9)]), noEnd],
  ['br', brotliCompressSync(text).subarray(0, -3), noEnd],
  ['deflate', deflateSync(text).subarray(0, -5), noEnd],
])('R31, R32, R63: parley exits with 8 if it cannot decode a %s body', async (coding, body, why) => {
  const { code, out, err } = await runApi(coding, body)
  const isDecoded = out !== '' && (text + text).startsWith(out)
  expect({ code, out }).toEqual({ code: 8, out: isDecoded ? out : Buffer.from(body).toString() })
  expect(err).toContain(`parley: the answer ${why}\n`)
})

/** Returns a response with this body and Content-Encoding. */
const response = (body: AsyncIterable<Uint8Array>, coding = 'gzip') => ({
  status: 200,
  statusText: '',
  headers: { 'content-encoding': coding },
  body,
  close() {},
})

async function* piecesOf(...pieces: Uint8Array[]) {
  yield* pieces
}

test('parley accepts a compressed body of exactly the maximum size and rejects a longer body', async () => {
  const read = (maxBytes: number) =>
    readBody(decompressBody(response(piecesOf(gzipSync('1234567890')), 'gzip'), maxBytes).body)
  expect(Buffer.from(await read(10)).toString()).toBe('1234567890')
  await expect(read(9)).rejects.toMatchObject({
    kind: 'response',
    message: 'the answer cannot be read: it is longer than 512 MiB',
  })
})

test('a compressed body without its end counts as cut, so the same command may succeed later', async () => {
  const read = readBody(decompressBody(response(piecesOf(gzipSync(text).subarray(0, -1)))).body)
  await expect(read).rejects.toMatchObject({ kind: 'response', details: { isCutOff: true } })
})

const sizes = [1, 3, 64 * 1024]
test.each(sizes)('api prints a body in chunks of %d bytes as it is if it is not compressed', async (size) => {
  const body = Buffer.from(text.repeat(size))
  const { code, out } = await runApi('gzip', body, size)
  expect({ code, isWhole: out === body.toString() }).toEqual({ code: 8, isWhole: true })
})

test('if a reset cuts a body of which nothing can be decompressed, a reader gets all received bytes', async () => {
  const compressed = [gzipSync(text).subarray(0, 2), gzipSync(text).subarray(2, 5)]
  for (const pieces of [compressed, [Buffer.from('plain'), Buffer.from('text')]]) {
    const body = async function* () {
      yield* pieces
      throw new CliError('response', 'the connection was reset')
    }
    const read: Uint8Array[] = []
    const reading = (async () => {
      for await (const chunk of decompressBody(response(body())).body) read.push(chunk)
    })()
    await expect(reading).rejects.toThrow('the connection was reset')
    expect(Buffer.concat(read)).toEqual(Buffer.concat(pieces))
  }
})

test('if a reset cuts a body after decompressed data, the failure is the reset', async () => {
  let cut = () => {}
  const isRead = new Promise<void>((resolve) => {
    cut = resolve
  })
  const body = async function* () {
    yield gzipSync(text)
    await isRead
    throw new CliError('response', 'the connection was reset')
  }
  const reading = (async () => {
    for await (const _ of decompressBody(response(body())).body) cut()
  })()
  await expect(reading).rejects.toThrow('the connection was reset')
})

test.each(['gzip', 'gzip, gzip'])('parley closes the %s body if its reader stops early', async (coding) => {
  let isClosed = false
  const body = async function* () {
    try {
      for (;;) yield gzipSync('x'.repeat(100_000))
    } finally {
      isClosed = true
    }
  }
  for await (const _ of decompressBody(response(body(), coding)).body) break
  expect(isClosed).toBe(true)
})
