import { expect, test } from 'vitest'
import type { BatchLine, BatchSource, PrepareBatchLine } from '../../src/batch/input.ts'
import { BatchTally, readBatchInput } from '../../src/batch/input.ts'
import { BatchLineRegistry } from '../../src/batch/line-registry.ts'
import { type CliError, createUsageErrorFromProblems } from '../../src/errors.ts'
import { prepare, sourceOf } from './pieces.ts'

const read = (
  source: BatchSource,
  make = prepare,
  registry = new BatchLineRegistry(),
  tally = new BatchTally(),
) => readBatchInput({ source, prepare: make, registry, tally })

async function collectLines(chunks: AsyncIterable<Iterable<BatchLine>>): Promise<BatchLine[]> {
  const all: BatchLine[] = []
  for await (const lines of chunks) all.push(...lines)
  return all
}

const linesOf = async (text: string) => collectLines(await read(sourceOf(text)))

const check = async (text: string, make: PrepareBatchLine = prepare, registry = new BatchLineRegistry()) => {
  const tally = new BatchTally()
  return { tally, lines: await read(sourceOf(text, { isRepeatable: true }), make, registry, tally) }
}

const refusal = (text: string, make?: PrepareBatchLine): Promise<CliError> =>
  check(text, make).then(
    () => Promise.reject(new Error('the input was accepted')),
    (error) => error,
  )

test('a batch line has a number, an id and a hash, and the hash of a repeated request ends with #2', async () => {
  const lines = await linesOf('"a"\n\n{"id":"x","prompt":"a"}\n{"prompt":"a","model":"m"}\n"b"\n')
  const counts = { attempts: 0, answers: 0, usage: {}, seconds: 0, failures: 0 }
  const common = { call: expect.anything(), tally: expect.anything(), ...counts }
  const hash = expect.stringMatching(/^[0-9a-f]{32}$/)
  expect(lines).toEqual([
    { index: 1, hash, ...common },
    { index: 3, id: 'x', hash: `${lines[0]?.hash}#2`, ...common },
    { index: 4, hash, ...common },
    { index: 5, hash, ...common },
  ])
  expect(new Set(lines.map((line) => line.hash)).size).toBe(4)
})

test('the hash of a batch line with a certain model and body never changes', async () => {
  const [line] = await linesOf('{"model":"m","contents":[]}')
  expect(line).toMatchObject({ hash: 'e22d4eb04d8fbd817bc718ecb30e98ca' })
})

test('a batch from a file counts its lines and its finished lines before it sends a request', async () => {
  const registry = new BatchLineRegistry()
  for (const { hash } of await linesOf('"a"\n"b"')) registry.addResult({ hash, isOk: true })
  const input = await check('"a"\n"b"\n\n"c"\n"a"', prepare, registry)
  expect(input.tally).toMatchObject({ total: 4, skipped: 2 })
  expect((await collectLines(input.lines)).map(({ index, hash }) => [index, hash.slice(32)])).toEqual([
    [4, ''],
    [5, '#2'],
  ])
  expect((await check('')).tally).toMatchObject({ total: 0, skipped: 0, hasLine: false })
})

test('the check of a batch file reports every invalid line and every duplicate id', async () => {
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

test('the check of a batch file reports a line whose body is invalid', async () => {
  const error = await refusal('"ok"\n{"contents":5}\n', (form) => {
    if ('body' in form)
      throw createUsageErrorFromProblems('the body', ['contents: must be a list', 'x: is odd'])
    return prepare(form)
  })
  expect(error.message).toMatch(/: line 2: the body: 2 problems: contents: must be a list; x: is odd$/)
})

test('if all invalid lines have the same problem, the check of a batch file prints the problem only once', async () => {
  const { message, details } = await refusal('"ok"\nhello\nyou\n')
  expect(message).toMatch(/: 2 problems of the same kind: line 2: it is not JSON: column 1: value expected$/)
  expect(details.problems).toBeUndefined()
})

test('the check of a batch file throws an unexpected error unchanged', async () => {
  const broken = () => {
    throw new TypeError('a bug')
  }
  await expect(check('"a"', broken)).rejects.toThrow(TypeError)
})

test('the check of a batch file stops after 1,000 problems', async () => {
  let made = 0
  async function* endless() {
    yield Buffer.from('"good"\n')
    while (made < 1e6) {
      made++
      yield Buffer.from('bad\n')
    }
  }
  const source = sourceOf(endless(), { isRepeatable: true })
  await expect(read(source)).rejects.toThrow('prompts.ndjson: more than 1000 problems')
  expect(made).toBeLessThan(1100)
})

const lineCount = 40
const large = (index: number) => `{"id":${index},"prompt":"${index} ${'x'.repeat(100_000)}"}\n`
const whole = Array.from({ length: lineCount }, (_, at) => large(at + 1)).join('')

/** Reads the lines of a file that may have another text at the second read. */
async function readTwice(text: string, again = text, registry = new BatchLineRegistry()) {
  let [reads, made] = [0, 0]
  const readNext = () => sourceOf(reads++ ? again : text).read()
  const source = { ...sourceOf(text, { isRepeatable: true }), read: readNext }
  const counting: PrepareBatchLine = (form) => {
    made++
    return prepare(form)
  }
  const lines: { index: number; hash: string }[] = []
  let failed: CliError | undefined
  try {
    for await (const chunk of await read(source, counting, registry))
      for (const line of chunk) lines.push(line)
  } catch (error) {
    failed = error as CliError
  }
  return { lines, failed, reads, made }
}

test('a batch reads its checked file a second time instead of keeping the lines in memory', async () => {
  const { lines, failed, reads, made } = await readTwice(whole)
  expect([failed, reads, made]).toEqual([undefined, 2, 2 * lineCount])
  expect(lines).toMatchObject((await linesOf(whole)).map(({ index, hash }) => ({ index, hash })))
})

test('a batch does not read its file again if every line is finished', async () => {
  const registry = new BatchLineRegistry()
  for (const { hash } of await linesOf('"a"\n')) registry.addResult({ hash, isOk: true })
  expect(await readTwice('"a"\n', '', registry)).toMatchObject({ lines: [], failed: undefined, reads: 1 })
})

test.each([
  ['a line was changed', whole.replace('"prompt":"40', '"prompt":"not 40'), /line 40 was changed/],
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
