import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { ArraySet } from '../../src/array-set.ts'
import { BatchTally } from '../../src/batch/input.ts'
import { BatchLineRegistry } from '../../src/batch/line-registry.ts'
import { openResultsFile, type ResultsFileOptions, readEarlierResults } from '../../src/batch/results-file.ts'
import type { Context } from '../../src/context.ts'
import { Deadline } from '../../src/deadline.ts'
import { ReportData } from '../../src/report-data.ts'
import { realTimers } from '../../src/timers.ts'
import { temporaryFolder } from '../harness/run.ts'
import { streamOf } from './pieces.ts'

const createPath = () => join(temporaryFolder(), 'results.ndjson')

const open = (
  path: string,
  { deadline = realTimers.now() + 300, ...options }: Partial<ResultsFileOptions> & { deadline?: number } = {},
) => {
  const world = {
    host: { cwd: dirname(path) },
    deadline: new Deadline(realTimers, deadline),
    reportData: new ReportData(0),
    messages: { note() {} },
  }
  return openResultsFile({ ...world, cleanups: new ArraySet() } as unknown as Context, {
    name: basename(path),
    isResumed: true,
    registry: new BatchLineRegistry(),
    tally: new BatchTally(),
    ...options,
  })
}

const line = (index: number) =>
  JSON.stringify({ index, id: `id ${index}`, hash: `hash ${index}`, ok: true, usage: { totalTokens: 10 } })

const isDone = (registry: BatchLineRegistry, index: number) =>
  registry.addLine({ hash: `hash ${index}` }).isDone

test('only one batch at a time can write a results file', async () => {
  const path = createPath()
  const file = await open(path)
  await expect(open(path)).rejects.toMatchObject({ kind: 'file', message: expect.stringContaining('locked') })
  file.write(line(1))
  file.close()
  const registry = new BatchLineRegistry()
  const next = await open(path, { registry })
  expect(isDone(registry, 1)).toBe(true)
  next.close()
})

test('--resume removes an incomplete last result, but keeps a complete one without a line break', async () => {
  for (const length of [...Array.from({ length: 11 }, (_, at) => at * 7), line(2).length])
    for (const before of ['', `${line(1)}\n`]) {
      const path = createPath()
      writeFileSync(path, before + line(2).slice(0, length))
      const isComplete = length === line(2).length
      const registry = new BatchLineRegistry()
      const file = await open(path, { registry })
      expect(isDone(registry, 2)).toBe(isComplete)
      file.write(line(3))
      file.close()
      const kept = isComplete ? `${line(2)}\n` : ''
      expect(readFileSync(path, 'utf8')).toBe(`${before}${kept}${line(3)}\n`)
    }
})

test('--resume rejects a file with binary data and does not change the file', async () => {
  const content = Buffer.alloc(1000)
  const path = createPath()
  writeFileSync(path, content)
  await expect(open(path)).rejects.toMatchObject({
    kind: 'file',
    message: 'results.ndjson: it contains no batch results to resume; give another file',
  })
  expect(readFileSync(path)).toEqual(content)
  expect(existsSync(`${path}.parley-lock`)).toBe(false)
})

test('--resume ignores lines that are not results', async () => {
  const strange = [
    'no JSON',
    '[1]',
    'null',
    '{"hash":7,"ok":true}',
    '{"hash":"hash 2","ok":"yes"}',
    '{"__proto__":{"hash":"hash 2","ok":true}}',
    '['.repeat(100_000),
    '\0'.repeat(4096),
    '\xff\xfe',
  ]
  const registry = new BatchLineRegistry()
  const bytes = Buffer.from([line(1), ...strange, line(3), ''].join('\n'), 'latin1')
  const tally = new BatchTally()
  expect(await readEarlierResults(streamOf(bytes, 1000), { registry, tally })).toEqual({
    count: 2,
    otherLines: strange.length,
    firstOtherLine: 2,
    incompleteResultOffset: undefined,
  })
  expect(tally).toMatchObject({ tokens: 20, hasUncountedAnswer: false })
  expect([1, 2, 3].map((index) => isDone(registry, index))).toEqual([true, false, true])
})

test('--resume adds up only token counts that are non-negative numbers', async () => {
  const odd = [-5, '7', null, true, {}].map((totalTokens, at) =>
    JSON.stringify({ hash: `h${at}`, ok: true, usage: { totalTokens } }),
  )
  const all = [...odd, '{"hash":"f","ok":false,"usage":{"totalTokens":4}}', ''].join('\n')
  const tally = new BatchTally()
  await readEarlierResults(streamOf(all), { registry: new BatchLineRegistry(), tally })
  expect(tally).toMatchObject({ tokens: 4, hasUncountedAnswer: true })
})
