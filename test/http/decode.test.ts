import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'

const text = '{"said":"hello, hello, hello, hello, hello"}\n'
const twice = Buffer.concat([gzipSync('{"said":'), gzipSync('"hello"}\n')])

/** What `api` prints of a body under a `Content-Encoding`, which comes in pieces of this size. */
async function printed(coding: string | undefined, body: Uint8Array, size = body.length) {
  const pieces: Uint8Array[] = []
  for (let start = 0; start < body.length; start += size) pieces.push(body.subarray(start, start + size))
  const headers: Record<string, string> = coding === undefined ? {} : { 'content-encoding': coding }
  const exchange = answering(pieces, { headers })
  const { code, out, err } = await run(['api', 'agents', '/v1/x'], { exchange })
  return { code, out, err }
}

test.each<[name: string, coding: string | undefined, body: Uint8Array, out?: string]>([
  ['no coding', undefined, Buffer.from(text)],
  ...['', 'identity', ' None ', 'utf-8', 'UTF8', ',identity,,'].map((word): [string, string, Uint8Array] => [
    'a word for none',
    word,
    Buffer.from(text),
  ]),
  ['gzip', 'gzip', gzipSync(text)],
  ['gzip', 'GZip', gzipSync(text)],
  ['gzip', 'x-gzip', gzipSync(text)],
  ['two members of gzip', 'gzip', twice, '{"said":"hello"}\n'],
  ['brotli', 'br', brotliCompressSync(text)],
  ['deflate', 'deflate', deflateSync(text)],
  ['deflate with another head', 'deflate', deflateSync(text, { level: 9 })],
  ['deflate without its head', 'deflate', deflateRawSync(text)],
  ['deflate without its head', 'deflate', deflateRawSync(text, { level: 0 })],
  ['gzip', 'identity, gzip', gzipSync(text)],
  ['gzip of brotli', 'br,  gzip', gzipSync(brotliCompressSync(text))],
  ['three codings', 'deflate, br, gzip', gzipSync(brotliCompressSync(deflateSync(text)))],
  ['gzip of gzip', 'gzip, gzip', gzipSync(gzipSync(text))],
  // Some proxies repeat the word and leave the body as it is.
  ['gzip', 'gzip, gzip', gzipSync(text)],
  ['gzip', 'gzip,gzip,gzip,gzip,gzip', gzipSync(text)],
])('%s under the content encoding %j is decoded, however it is cut', async (_, coding, body, out = text) => {
  for (const size of [body.length, 1, 3])
    expect(await printed(coding, body, size)).toEqual({ code: 0, out, err: '' })
})

test.each(['gzip', 'br', 'deflate', 'identity'])('no body is none under %s', async (coding) => {
  expect(await printed(coding, new Uint8Array())).toMatchObject({ code: 0, out: '' })
})

test.each<[coding: string, body: Uint8Array, why: string]>([
  ['zst', gzipSync(text), 'its encoding, zst, is unknown'],
  ['gzip, zst', gzipSync(text), 'its encoding, zst, is unknown'],
  ['constructor', gzipSync(text), 'its encoding, constructor, is unknown'],
  ['gzip'.concat(', gzip'.repeat(5)), gzipSync(text), `its encoding, gzip${', gzip'.repeat(5)}, is unknown`],
  ['gzip', Buffer.from(text), 'it cannot be decompressed'],
  ['x-gzip, x-gzip', gzipSync(text), 'it cannot be decompressed'],
  ['gzip, br', gzipSync(text), 'it cannot be decompressed'],
  ['gzip', gzipSync(text).subarray(0, -9), 'it cannot be decompressed'],
  ['gzip', Buffer.from('\x1f'), 'it cannot be decompressed'],
  ['br', brotliCompressSync(text).subarray(0, -3), 'it cannot be decompressed'],
  ['deflate', deflateSync(text).subarray(0, -5), 'it cannot be decompressed'],
])('under %j the body is not what was said', async (coding, body, why) => {
  const { code, out, err } = await printed(coding, body)
  expect({ code, isStart: text.startsWith(out) }).toEqual({ code: 8, isStart: true })
  expect(err).toContain(`parley: the answer cannot be read: ${why}\n`)
})
