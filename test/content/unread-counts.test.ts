import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { answering, message, run, temporaryFolder } from '../harness/run.ts'

/** Runs a chat. Returns its footer and the usage in its report. */
async function chat(body: string) {
  const cwd = temporaryFolder()
  const argv = ['chat', 'x', '--usage', '--report', 'r']
  const { code, err } = await run(argv, { cwd, exchange: answering(body) })
  expect(code).toBe(0)
  return { err, usage: JSON.parse(readFileSync(join(cwd, 'r'), 'utf8')).usage }
}

const withOutput = (count: string) => message('Hi').replace('"output_tokens":5', `"output_tokens":${count}`)

describe('token counts that parley cannot read', () => {
  test.each(['"5"', '-1', '1.5', '1e400', '{}', 'true', '9007199254740993', 'null'])(
    'the token count %s counts as missing',
    async (count) => {
      const { err, usage } = await chat(withOutput(count))
      expect(err).toMatch(/· 3 tokens in · \d/)
      expect(usage).toMatchObject({ inputTokens: 3, outputTokens: null, totalTokens: 3 })
    },
  )

  test.each<[string, string[], string, number]>([
    ['is missing', [], message('Hi', { usage: undefined }), 0],
    ['is missing with --raw', ['--raw'], message('Hi', { usage: undefined }), 0],
  ])(
    'a resumed batch prints "at least" before its tokens if an earlier count %s',
    async (_, flags, body, code) => {
      const cwd = temporaryFolder()
      const argv = ['chat', '--batch', 'in', '--results', 'out', ...flags]
      writeFileSync(join(cwd, 'in'), '"a"\n')
      expect((await run(argv, { cwd, exchange: answering(body) })).code).toBe(code)
      writeFileSync(join(cwd, 'in'), '"a"\n"b"\n')
      const exchange = answering(message('Hi'))
      const resumed = await run([...argv, '--resume'], { cwd, exchange })
      expect(resumed.err).toMatch(/ · at least \d+ tokens( in this run, \d+ in all)? · /)
      const done = await run([...argv, '--resume'], { cwd, exchange })
      expect(done.requests).toHaveLength(0)
      expect(done.err).toMatch(/ · at least 0 tokens in this run, \d+ in all · /)
    },
  )

  test('a resumed batch counts no tokens for a line that was not answered', async () => {
    const cwd = temporaryFolder()
    const argv = ['chat', '--batch', 'in', '--results', 'out', '--retries', '0']
    writeFileSync(join(cwd, 'in'), '"a"\n')
    await run(argv, { cwd, exchange: answering('{}', { status: 500 }) })
    const resumed = await run([...argv, '--resume'], { cwd, exchange: answering(message('Hi')) })
    expect(resumed.err).toContain('1 ok · 0 failed · 8 tokens · ')
  })
})
