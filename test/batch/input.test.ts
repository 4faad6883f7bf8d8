import { describe, expect, test } from 'vitest'
import { type PrepareBatchLine, readBatchInput } from '../../src/batch/input.ts'
import { LineLedger } from '../../src/batch/ledger.ts'
import { BatchLineUsage } from '../../src/content/tokens.ts'
import { type CliError, createUsageErrorFromProblems } from '../../src/errors.ts'
import { collect, prepare, sourceOf } from './pieces.ts'

const linesOf = async (text: string) =>
  collect((await readBatchInput(sourceOf(text), prepare, new LineLedger())).lines)

const check = async (text: string, make: PrepareBatchLine = prepare, ledger = new LineLedger()) =>
  readBatchInput(sourceOf(text, { isRepeatable: true }), make, ledger)

const refusal = async (text: string, make?: PrepareBatchLine): Promise<CliError> => {
  try {
    await check(text, make)
  } catch (error) {
    return error as CliError
  }
  throw new Error('it was accepted')
}

const work = { call: expect.anything(), spent: expect.any(BatchLineUsage), seconds: 0, failures: 0 }

test('a batch creates a request with the number, id and hash of each line', async () => {
  const jobs = await linesOf('"a"\n\n{"id":"x","prompt":"a"}\n{"prompt":"a","model":"m"}\n"b"\n')
  expect(jobs).toEqual([
    { index: 1, hash: expect.stringMatching(/^[0-9a-f]{32}$/), ...work },
    {
      index: 3,
      id: 'x',
      hash: expect.stringMatching(/^[0-9a-f]{32}#2$/),
      ...work,
    },
    { index: 4, hash: expect.stringMatching(/^[0-9a-f]{32}$/), ...work },
    { index: 5, hash: expect.stringMatching(/^[0-9a-f]{32}$/), ...work },
  ])
  const bases = jobs.map((job) => ('hash' in job ? job.hash.slice(0, 32) : ''))
  expect(new Set(bases).size).toBe(3)
  expect(bases[0]).toBe(bases[1])
})

test('the hash of a batch line depends only on model and body, and never changes', async () => {
  const [job] = await linesOf('{"model":"m","contents":[]}')
  expect(job).toMatchObject({ hash: 'e22d4eb04d8fbd817bc718ecb30e98ca' })
})

describe("check of a batch's input", () => {
  test('before its first request, a batch from a file counts all and the finished lines', async () => {
    const ledger = new LineLedger()
    for (const { hash } of await linesOf('"a"\n"b"')) ledger.addResult({ hash, isOk: true })
    const input = await check('"a"\n"b"\n\n"c"\n"a"', prepare, ledger)
    expect(input.tally).toMatchObject({ total: 4, skipped: 2 })
    expect((await collect(input.lines)).map(({ index, hash }) => [index, hash.slice(32)])).toEqual([
      [4, ''],
      [5, '#2'],
    ])
    expect((await check('')).tally).toMatchObject({ total: 0, skipped: 0, hasLine: false })
  })

  test('the check of a batch reports every invalid line and every duplicate id', async () => {
    const lines = ['"ok"', 'hello', '{"id":1,"prompt":"p"}', '{"prompt":7}', '{"id":"1","prompt":"q"}', '"x']
    const error = await refusal(lines.join('\n'))
    expect(error).toMatchObject({ kind: 'usage', message: 'prompts.ndjson: 4 problems' })
    expect(error.details).toEqual({
      problems: [
        'line 2: it is not JSON: column 1: value expected',
        'line 4: its "prompt" must be a string',
        'line 5: its id "1" is also the id of an earlier line',
        'line 6: it is not JSON: column 1: string with an invalid escape, a line break or no end',
      ],
      consequence: 'jq -R . converts each line of plain text to JSON',
    })
  })

  test('the check of a batch reports a line whose body is invalid', async () => {
    const error = await refusal('"ok"\n{"contents":5}\n', (form) => {
      if ('body' in form)
        throw createUsageErrorFromProblems('the body', ['contents: must be a list', 'x: is odd'])
      return prepare(form)
    })
    expect(error.message).toBe(
      'prompts.ndjson: line 2: the body: 2 problems: contents: must be a list; x: is odd',
    )
  })

  test('the check of a batch prints a problem once if all invalid lines have the same', async () => {
    const { message, details } = await refusal('"ok"\nhello\nyou\n')
    expect({ message, problems: details.problems }).toEqual({
      message: 'prompts.ndjson: 2 problems, all as in line 2: it is not JSON: column 1: value expected',
      problems: undefined,
    })
  })

  test('a batch reports a failure that no line caused unchanged', async () => {
    const broken = () => Promise.reject(new TypeError('a bug'))
    await expect(check('"a"', broken)).rejects.toThrow(TypeError)
  })

  test('the check of a batch stops after 1,000 problems', async () => {
    let made = 0
    async function* endless() {
      yield Buffer.from('"good"\n')
      while (made < 1e6) {
        made++
        yield Buffer.from('bad\n')
      }
    }
    const source = sourceOf(endless(), { isRepeatable: true, name: 'it' })
    const checking = async () => readBatchInput(source, prepare, new LineLedger())
    await expect(checking()).rejects.toThrow('it: more than 1000 problems')
    expect(made).toBeLessThan(1100)
  })
})

describe('second read of a checked file', () => {
  const lineCount = 40
  const large = (index: number) => `{"id":${index},"prompt":"${index} ${'x'.repeat(100_000)}"}\n`
  const whole = Array.from({ length: lineCount }, (_, at) => large(at + 1)).join('')

  /** Reads the lines of a file that may have another text at the second read. */
  async function readTwice(text: string, again = text, ledger = new LineLedger()) {
    let [reads, made] = [0, 0]
    const source = {
      ...sourceOf(text, { isRepeatable: true }),
      read: () => sourceOf(reads++ ? again : text).read(),
    }
    const counting: PrepareBatchLine = (form) => {
      made++
      return prepare(form)
    }
    const input = await readBatchInput(source, counting, ledger)
    const lines: { index: number; hash: string }[] = []
    const failed = await gatherInto(lines, input.lines).catch((error: CliError) => error)
    return { lines, failed, reads, made }
  }

  async function gatherInto<T>(all: T[], items: AsyncIterable<T>): Promise<undefined> {
    for await (const item of items) all.push(item)
  }

  test('a batch reads its checked file a second time instead of keeping the lines in memory', async () => {
    const { lines, failed, reads, made } = await readTwice(whole)
    expect([failed, reads, made]).toEqual([undefined, 2, 2 * lineCount])
    const once = await linesOf(whole)
    const named = (all: typeof lines) => all.map(({ index, hash }) => [index, hash])
    expect(named(lines)).toEqual(named(once))
  })

  test('a batch does not read its file again if every line is finished', async () => {
    const ledger = new LineLedger()
    for (const { hash } of await linesOf('"a"\n')) ledger.addResult({ hash, isOk: true })
    expect(await readTwice('"a"\n', '', ledger)).toMatchObject({ lines: [], failed: undefined, reads: 1 })
  })

  test.each([
    [
      'a line was changed',
      whole.replace(`{"id":${lineCount},"prompt":"`, `{"id":${lineCount},"prompt":"not `),
      /line 40 was changed/,
    ],
    ['a line became invalid', whole.replace(`{"id":${lineCount},`, '{"id":,'), /line 40 was changed/],
    ['the file was truncated', whole.slice(0, -large(lineCount).length), /it was truncated/],
  ])('a batch exits with 11 if %s after the check of the file', async (_, again, why) => {
    const { failed } = await readTwice(whole, again)
    expect(failed).toMatchObject({ kind: 'file', message: expect.stringMatching(why) })
  })

  test('a batch ignores lines that were added after the check of the file', async () => {
    const { lines, failed } = await readTwice(whole, `${whole}${large(lineCount + 1)}`)
    expect([lines.length, failed]).toEqual([lineCount, undefined])
  })
})
