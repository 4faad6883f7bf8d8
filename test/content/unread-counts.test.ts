import { expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answering, message, parseLines, readJson, run, temporaryFolder } from '../harness/run.ts'

/** Runs a chat. Returns its footer and the usage in its report. */
async function chat(body: string) {
  const cwd = temporaryFolder()
  const argv = ['chat', 'x', '--usage', '--report', 'r']
  const { code, err } = await run(argv, { cwd, exchange: answering(body) })
  expect(code).toBe(0)
  return { err, usage: readJson(cwd, 'r').usage }
}

const withOutput = (count: string) => message('Hi').replace('"output_tokens":5', `"output_tokens":${count}`)

test.each(['1e400', '9007199254740993'])('parley reports the token count %s as unknown', async (count) => {
  const { err, usage } = await chat(withOutput(count))
  expect(err).toContain('· 3 tokens in · unknown out ·')
  expect(usage).toMatchObject({ inputTokens: 3, outputTokens: null, totalTokens: null })
})

const unreadable = { inputTokens: 3, outputTokens: null, totalTokens: null }

test.each([
  ['an unreadable count', withOutput('"5"'), unreadable, 9, 19],
  ['only input tokens', message('Hi', { usage: { input_tokens: 3 } }), { inputTokens: 3 }, 9, 19],
  ['an answer without usage', message('Hi', { usage: undefined }), undefined, null, 16],
])('a batch with %s prints "at least" before the sum of the known tokens', async (...row) => {
  const [, second, usage, input, known] = row
  const cwd = temporaryFolder({ in: '"a"\n"b"\n"c"\n' })
  const exchange: Exchange = (request) => {
    return answering(Buffer.from(request.body ?? []).includes('"b"') ? second : message('Hi'))(request)
  }
  const argv = ['chat', '--batch', 'in', '--report', 'r', '--max-total-tokens', '1000']
  const { code, out, err } = await run(argv, { cwd, exchange })
  const counted = { inputTokens: 3, outputTokens: 5, totalTokens: 8 }
  expect([code, parseLines(out).map((result) => result.usage)]).toEqual([0, [counted, usage, counted]])
  expect(err).toContain(`3 ok · 0 failed · at least ${known} tokens · `)
  expect(err).toContain('--max-total-tokens did not count the tokens that the service did not report')
  const total = { inputTokens: input, outputTokens: null, totalTokens: null }
  expect(readJson(cwd, 'r').usage).toMatchObject(total)
})

test('--max-total-tokens counts output tokens without input tokens, also those of an earlier run', async () => {
  const cwd = temporaryFolder({ in: '"a"\n"b"\n"c"\n' })
  const exchange = answering(message('Hi', { usage: { output_tokens: 5 } }))
  const argv = ['chat', '--batch', 'in', '--results', 'out', '--resume', '--concurrency', '1']
  expect(await run([...argv, '--max-total-tokens', '5'], { cwd, exchange })).toMatchObject({ code: 15 })
  const { code, requests } = await run([...argv, '--max-total-tokens', '10'], { cwd, exchange })
  expect({ code, sent: requests.length }).toEqual({ code: 15, sent: 1 })
})
