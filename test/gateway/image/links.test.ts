import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { answering } from '../../harness/run.ts'
import { image, imageAnswer, inline, parts, png } from './image.ts'

describe('links', () => {
  const uri = 'https://files.test/../../etc/passwd?sig=1'
  const linked = imageAnswer({ fileData: { mimeType: 'image/png', fileUri: uri } })

  /** The gateway's answer first, then the link's. */
  const then = (answer: Exchange): Exchange => {
    const gateway = answering(linked)
    return (request) => (request.method === 'POST' ? gateway(request) : answer(request))
  }

  test('I14: are printed, not fetched, and name no file', async () => {
    const ended = await image(['x'], { exchange: answering(linked) })
    expect(ended).toMatchObject({ code: 0, out: `${uri}\n`, files: [] })
    expect(ended.requests).toHaveLength(1)
    expect(ended.err).toContain('--download')
  })

  test("--download fetches them without a credential, under the prompt's name", async () => {
    const exchange = then(answering(png(), { headers: { 'content-type': 'image/png' } }))
    const ended = await image(['x', '--download', '-H', 'X-Secret: s'], { exchange })
    expect(ended).toMatchObject({ code: 0, out: 'x.png\n', err: '', files: ['x.png'] })
    expect(ended.requests[1]).toMatchObject({ method: 'GET', url: 'https://files.test/etc/passwd?sig=1' })
    expect(JSON.stringify(ended.requests[1])).not.toMatch(/canary|X-Secret|uthorization/)
  })

  test.each([
    'http://files.test/x.png',
    'file:///etc/passwd',
    'gs://bucket/x',
    'x.png',
    'https://u:p@files.test/x',
  ])('only https without a user name is fetched: %s', async (fileUri) => {
    const ended = await image(['x', '--download'], parts({ fileData: { fileUri } }))
    expect(ended).toMatchObject({ code: 8, out: '', files: [] })
    expect(ended.requests).toHaveLength(1)
    const printed = await image(['x'], parts({ fileData: { fileUri } }))
    expect(printed.code).toBe(0)
    expect(printed.err).toMatch(/an image is only linked to, and (only https links|it contains a user name)/)
    expect(printed.err).not.toContain('--download')
  })

  test('one that cannot be fetched is exit 8 and told, for the image was paid for', async () => {
    const exchange = then(answering('gone', { status: 404 }))
    const ended = await image(['x', '--download'], { exchange })
    expect(ended).toMatchObject({ code: 8, out: '', files: [] })
    expect(ended.err).toContain(`its host answered 404: ${uri}`)
  })

  test('-o - does not mix them with an image', async () => {
    const alone = await image(['x', '-o', '-'], { exchange: answering(linked) })
    expect(alone).toMatchObject({ code: 8, out: '' })
    expect(alone.err).toContain(uri)
    expect(alone.kept).toHaveLength(1)
    const beside = await image(['x', '-o', '-'], parts({ fileData: { fileUri: uri } }, inline(png())))
    expect(Buffer.from(beside.outBytes)).toEqual(png())
  })

  test('I41 one that cannot be fetched is kept whole, also what its message leaves out', async () => {
    const signed = `https://files.test/x.png?token=0123456789&long=${'x'.repeat(3000)}`
    const gateway = answering(imageAnswer({ fileData: { fileUri: signed } }))
    const gone = answering('', { status: 403 })
    const exchange: Exchange = (request) => (request.method === 'POST' ? gateway(request) : gone(request))
    const ended = await image(['x', '--download'], { exchange })
    expect(ended).toMatchObject({ code: 8, out: '', files: [] })
    const [path = ''] = /\S+parley-[\w-]+\.txt/.exec(ended.err) ?? []
    expect(readFileSync(path, 'utf8')).toBe(`${signed}\n`)
  })
})
