import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { answerInOrder, unanswered } from '../../harness/responses.ts'
import { readText, run, temporaryFolder } from '../../harness/run.ts'
import { continued, piece, used, whole } from '../parts.ts'
import { inline, png } from './image.ts'

const picture = (end: object, more: object = {}) =>
  JSON.stringify({
    candidates: [{ content: { parts: [{ text: 'Here.' }, inline(png())] }, ...end }],
    ...more,
  })

async function runIn(argv: string[], exchange: Exchange, files: Record<string, string> = {}) {
  const cwd = temporaryFolder(files)
  const ended = await run(['image', '-m', 'm', ...argv], { cwd, exchange, env: { TMPDIR: cwd } })
  const images = readdirSync(cwd).filter((name) => name.endsWith('.png'))
  const tokens = ended.requests.map(({ text }) => JSON.parse(text).continuationToken)
  return { ...ended, images, tokens, read: (name: string) => readText(cwd, name) }
}

test('image requests the rest of a continued answer and saves the images of all parts', async () => {
  const exchange = answerInOrder(
    piece('First, ', continued('t1'), used(10, 100)),
    picture(continued('t2'), used(10, 200)),
    picture(whole, used(10, 3)),
  )
  const ended = await runIn(['fox', '--usage', '--report', 'r'], exchange)
  expect(ended).toMatchObject({ code: 0, out: 'fox.png\nfox-2.png\n', tokens: [undefined, 't1', 't2'] })
  expect(ended.err).toMatch(/\| First, Here\.\n[\s\S]*30 tokens in · 303 out/)
  const report = { attempts: 3, files: ['fox.png', 'fox-2.png'], usage: { totalTokens: 333 } }
  expect(JSON.parse(ended.read('r'))).toMatchObject(report)
})

test.each<[what: string, answer: string | Exchange, code: number]>([
  ['gets no answer', unanswered, 10],
  ['has neither text nor a new token', piece('', continued('t1'), used(0, 0)), 8],
])('image saves images and text of the first part if its continuation %s', async (_, answer, code) => {
  const first = picture(continued('t1'), used(10, 20))
  const ended = await runIn(['fox', '--retries', '0', '--report', 'r'], answerInOrder(first, answer))
  expect(ended).toMatchObject({ code, out: 'fox.png\n', images: ['fox.png'] })
  expect(ended.err).toContain('| Here.')
  expect(JSON.parse(ended.read('r'))).toMatchObject({ attempts: 2, usage: { totalTokens: 30 } })

  const batch = ['--batch', 'in', '-o', './', '--results', 'out', '--retries', '0']
  const line = await runIn(batch, answerInOrder(first, answer), { in: '"fox"\n' })
  const result = JSON.parse(line.read('out'))
  expect([line.code, line.images]).toEqual([code, ['000001-fox.png']])
  expect(result).toMatchObject({ ok: false, error: { attempts: 2 }, usage: { totalTokens: 30 } })
  expect(result.error.message).toContain('received: ./000001-fox.png')
})
