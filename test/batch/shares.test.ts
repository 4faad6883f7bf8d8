import { expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { answering, message, readJson, rejected, run, temporaryFolder } from '../harness/run.ts'
import { batchFolder, indexes, inOrder, parseResults, type Result } from './pieces.ts'

/** Ten lines, of which the fourth, the seventh and the tenth are equal. */
const ten = Array.from({ length: 10 }, (_, at) => `{"prompt":"p ${at % 3 === 0 && at > 0 ? 'same' : at}"}`)

const batch = ['chat', '--batch', 'in.ndjson']
const report = ['--report', 'report.json']
const countsIn = (cwd: string) => readJson(cwd, 'report.json').counts

/** Creates an exchange that fails requests with one of these prompts. */
const failing =
  (...words: string[]): Exchange =>
  (request, onSent) => {
    const text = Buffer.from(request.body ?? []).toString()
    const isBad = words.some((word) => text.includes(`"${word}"`))
    return (isBad ? answering('{"error":"no"}', { status: 400 }) : answering(message('hi')))(request, onSent)
  }

test('--share I/N requests every Nth line starting at line I, so all shares together request each line once', async () => {
  const cwd = batchFolder(ten)
  const whole = parseResults((await run(batch, { cwd })).out)
  const shares = []
  for (const share of ['1/3', '2/3', '3/3']) {
    const ended = await run([...batch, '--share', share, ...report], { cwd })
    expect(ended.code).toBe(0)
    shares.push(parseResults(ended.out))
    expect(countsIn(cwd).total).toBe(shares.at(-1)?.length)
  }
  expect(shares.map(indexes)).toEqual([
    [1, 4, 7, 10],
    [2, 5, 8],
    [3, 6, 9],
  ])
  const bare = (results: Result[]) => inOrder(results).map(({ index, hash }) => [index, hash])
  expect(bare(shares.flat())).toEqual(bare(whole))
})

test('--share requests the same lines of a pipe as of a file, and numbers empty lines, too', async () => {
  const stdin = `${[...ten.slice(0, 3), '', ...ten.slice(3)].join('\n')}\n`
  const cwd = temporaryFolder()
  const ended = await run(['chat', '--batch', '-', '--share', '2/2', ...report], { cwd, stdin })
  expect(indexes(parseResults(ended.out))).toEqual([2, 6, 8, 10])
  expect(countsIn(cwd)).toEqual({ total: 4, ok: 4, warned: 0, failed: 0, skipped: 0, notDone: 0 })
})

test('--share exits with 2 for an invalid line, also if the line belongs to another share', async () => {
  const lines = [...ten.slice(0, 4), 'no', ...ten.slice(5)]
  const invalid = rejected(2, /line 5: it is not JSON/)
  for (const share of ['1/3', '2/3', '3/3']) {
    expect(await run([...batch, '--share', share], { cwd: batchFolder(lines) })).toMatchObject(invalid)
    const piped = await run(['chat', '--batch', '-', '--share', share], { stdin: lines.join('\n') })
    expect(piped.code).toBe(2)
  }
})

const threeFailures = failing('p 1', 'p 4', 'p 8')
const tooMany = /\d requests failed, more than --max-failed \d+%? allows, (such as )?line \d+:/
test.each([
  ['30%', 0, 10],
  ['2', 4, 9],
  ['29%', 4, 9],
  ['0', 4, 2],
])('--max-failed %s with 3 failed of 10 lines exits with %i after %i requests', async (most, code, count) => {
  const cwd = batchFolder(ten)
  const argv = [...batch, '--concurrency', '1', '--max-failed', most, ...report]
  const ended = await run(argv, { cwd, exchange: threeFailures })
  expect([ended.code, ended.requests.length, parseResults(ended.out).length]).toEqual([code, count, count])
  const failed = parseResults(ended.out).filter(({ ok }) => !ok).length
  const left = { skipped: 0, notDone: 10 - count }
  expect(countsIn(cwd)).toEqual({ total: 10, ok: count - failed, warned: 0, failed, ...left })
  expect(readJson(cwd, 'report.json')).toMatchObject({ exit: code, failures: { refused: failed } })
  expect(ended.err).toMatch(code === 0 ? /^parley: 7 ok · 3 failed/ : tooMany)
})

test('a batch that reads a pipe checks --max-failed N at once, but --max-failed N% only at its end', async () => {
  const argv = ['chat', '--batch', '-', '--concurrency', '1', '--max-failed']
  const stdin = `${ten.join('\n')}\n`
  const number = await run([...argv, '1'], { stdin, exchange: threeFailures })
  expect([number.code, number.requests.length]).toEqual([4, 5])
  const percent = await run([...argv, '29%'], { stdin, exchange: threeFailures })
  expect([percent.code, percent.requests.length]).toEqual([4, 10])
  expect((await run([...argv, '30%'], { stdin, exchange: threeFailures })).code).toBe(0)
})

const invalid = ['--share=0/3', '--share=1', '--share=', '--max-failed=-1', '--max-failed=x', '--max-failed=']
test.each(invalid)('a batch exits with 2 for the value of %s', async (flag) => {
  const ended = await run([...batch, flag], { cwd: batchFolder(ten) })
  expect(ended).toMatchObject(rejected(2, flag.replace(/=.*/, '')))
})

test('the report of a batch has null for total and notDone if the batch stops before its pipe ends', async () => {
  const cwd = temporaryFolder()
  const runPiped = async (stdin: string, ...flags: string[]) => {
    const argv = ['chat', '--batch', '-', '--concurrency', '1', ...report, ...flags]
    const { code } = await run(argv, { cwd, stdin, exchange: answering(message('hi')) })
    const { total, ok, notDone } = countsIn(cwd)
    return [code, total, ok, notDone]
  }
  expect(await runPiped(ten.join('\n'), '--max-total-tokens', '20')).toEqual([15, null, 3, null])
  expect(await runPiped('"a"\nbad\n"b"\n')).toEqual([2, null, 1, null])
  expect(await runPiped('"a"\n\n"b"\n')).toEqual([0, 2, 2, 0])
})
