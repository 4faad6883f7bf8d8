import { existsSync, readFileSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BatchTally } from '../../src/batch/input.ts'
import { BatchLineRegistry } from '../../src/batch/line-registry.ts'
import { openResultsFile, type ResultsFileOptions, readEarlierResults } from '../../src/batch/results-file.ts'
import type { Context } from '../../src/context.ts'
import { Deadline } from '../../src/deadline.ts'
import { ShortLivedSet } from '../../src/short-lived-set.ts'
import { Summary } from '../../src/summary.ts'
import { realTimers } from '../../src/timers.ts'
import { ownerOnlyMode, temporaryFolder } from '../harness/run.ts'
import { streamOf } from './pieces.ts'

const createPath = () => join(temporaryFolder(), 'results.ndjson')

const open = (
  path: string,
  { deadline = realTimers.now() + 300, ...options }: Partial<ResultsFileOptions> & { deadline?: number } = {},
) => {
  const world = {
    host: { cwd: dirname(path) },
    deadline: new Deadline(realTimers, deadline),
    summary: new Summary(0),
    messages: { note() {} },
  }
  return openResultsFile({ ...world, cleanups: new ShortLivedSet() } as unknown as Context, {
    name: basename(path),
    isResumed: true,
    registry: new BatchLineRegistry(),
    tally: new BatchTally(),
    ...options,
  })
}

const line = (index: number, { isOk = true, tokens = 10 } = {}) =>
  JSON.stringify({
    index,
    id: `id ${index}`,
    hash: `hash ${index}`,
    ok: isOk,
    usage: { totalTokens: tokens },
  })

const isDone = (registry: BatchLineRegistry, index: number) =>
  registry.addLine({ hash: `hash ${index}` }).isDone

describe('a batch writes its results file', () => {
  test('a batch creates its results file with mode 0600 and appends each result at once', async () => {
    const path = createPath()
    const file = await open(path, { isResumed: false })
    file.write(line(1))
    expect(readFileSync(path, 'utf8')).toBe(`${line(1)}\n`)
    file.write(line(2))
    expect(readFileSync(path, 'utf8')).toBe(`${line(1)}\n${line(2)}\n`)
    expect(statSync(path).mode & 0o777).toBe(ownerOnlyMode)
    expect(existsSync(`${path}.parley-lock`)).toBe(true)
    file.close()
    expect(existsSync(`${path}.parley-lock`)).toBe(false)
  })

  test('a batch does not create its results file through a symbolic link (needs POSIX files)', async () => {
    const path = createPath()
    symlinkSync(`${path}.elsewhere`, path)
    await expect(open(path, { isResumed: false })).rejects.toMatchObject({
      kind: 'file',
      message: 'results.ndjson: it is a symbolic link: give the path of the file',
    })
    expect(existsSync(`${path}.elsewhere`)).toBe(false)
  })

  test('only one batch at a time can write a results file', async () => {
    const path = createPath()
    const file = await open(path)
    await expect(open(path)).rejects.toMatchObject({
      kind: 'file',
      message: expect.stringContaining('locked'),
    })
    file.write(line(1))
    file.close()
    const registry = new BatchLineRegistry()
    const next = await open(path, { registry })
    expect(isDone(registry, 1)).toBe(true)
    next.close()
  })

  test('a batch throws instead of writing if another run took the lock of the results file (needs files replaced while open)', async () => {
    const path = createPath()
    const file = await open(path)
    file.write(line(1))
    writeFileSync(`${path}.other`, '')
    renameSync(`${path}.other`, `${path}.parley-lock`)
    expect(() => file.write(line(2))).toThrow('results.ndjson: another parley process took over its lock')
    file.close()
    expect(readFileSync(path, 'utf8')).toBe(`${line(1)}\n`)
    expect(existsSync(`${path}.parley-lock`)).toBe(true)
  })
})

describe('--resume reads the results of earlier runs', () => {
  test('--resume skips finished lines, reads only the last result of a hash, and sums the tokens', async () => {
    const path = createPath()
    const lines = [
      line(1),
      line(2, { isOk: false }),
      line(3),
      line(3, { isOk: false }),
      line(2),
      line(4, { isOk: false }),
    ]
    writeFileSync(path, lines.map((each) => `${each}\n`).join(''))
    const registry = new BatchLineRegistry()
    const tally = new BatchTally()
    const file = await open(path, { registry, tally })
    expect(tally).toMatchObject({ tokens: 60, earlierTokens: 60 })
    expect([1, 2, 3, 4, 5].map((index) => isDone(registry, index))).toEqual([true, true, false, false, false])
    file.write(line(5))
    file.close()
    expect(readFileSync(path, 'utf8')).toBe([...lines, line(5), ''].join('\n'))
  })

  test('--resume removes an incomplete last result, but keeps a complete one without a line break', async () => {
    const lengths = Array.from({ length: 11 }, (_, at) => at * 7)
    for (const length of [...lengths, line(2).length])
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
      tornAt: undefined,
    })
    expect(tally).toMatchObject({ tokens: 20, hasUncountedAnswer: false })
    expect([1, 2, 3].map((index) => isDone(registry, index))).toEqual([true, false, true])
  })

  test('--resume sums only tokens that are non-negative numbers', async () => {
    const odd = [-5, '7', null, true, {}].map((totalTokens, at) =>
      JSON.stringify({ hash: `h${at}`, ok: true, usage: { totalTokens } }),
    )
    const failed = '{"hash":"f","ok":false,"usage":{"totalTokens":4}}'
    const all = [...odd, failed, ''].join('\n')
    const tally = new BatchTally()
    await readEarlierResults(streamOf(all), { registry: new BatchLineRegistry(), tally })
    expect(tally).toMatchObject({ tokens: 4, hasUncountedAnswer: true })
  })
})
