import { describe, expect, test } from 'vitest'
import { checkJobs } from '../../src/batch/check.ts'
import { type Prepare, readJobs } from '../../src/batch/jobs.ts'
import { createLedger } from '../../src/batch/ledger.ts'
import { readLines } from '../../src/batch/lines.ts'
import { nothingSpent } from '../../src/content/spending.ts'
import { type CliError, usageProblems } from '../../src/errors.ts'
import { gather, prepare, streamOf, type TestCall } from './pieces.ts'

const jobsOf = (text: string, make: Prepare<TestCall> = prepare, ledger = createLedger()) =>
  readJobs(readLines(streamOf(text)), make, ledger)

const refusal = async (text: string, make?: Prepare<TestCall>): Promise<CliError> => {
  try {
    await checkJobs(jobsOf(text, make), 'prompts.ndjson')
  } catch (error) {
    return error as CliError
  }
  throw new Error('it was accepted')
}

const work = { call: expect.anything(), spent: nothingSpent() }

test('a line becomes a job, named by its number, its id and its hash', async () => {
  const jobs = await gather(jobsOf('"a"\n\n{"id":"x","prompt":"a"}\n{"prompt":"a","model":"m"}\n"b"\n'))
  expect(jobs).toEqual([
    { index: 1, hash: expect.stringMatching(/^[0-9a-f]{32}$/), isDone: false, ...work },
    {
      index: 3,
      id: 'x',
      hash: expect.stringMatching(/^[0-9a-f]{32}#2$/),
      isDone: false,
      ...work,
    },
    { index: 4, hash: expect.stringMatching(/^[0-9a-f]{32}$/), isDone: false, ...work },
    { index: 5, hash: expect.stringMatching(/^[0-9a-f]{32}$/), isDone: false, ...work },
  ])
  const bases = jobs.map((job) => ('hash' in job ? job.hash.slice(0, 32) : ''))
  expect(new Set(bases).size).toBe(3)
  expect(bases[0]).toBe(bases[1])
})

test('a hash is of model and body and nothing else, and the same for ever', async () => {
  const [job] = await gather(jobsOf('{"model":"m","contents":[]}'))
  expect(job).toMatchObject({ hash: 'e22d4eb04d8fbd817bc718ecb30e98ca' })
})

describe('a whole input is checked', () => {
  test('how much there is', async () => {
    const ledger = createLedger()
    for await (const job of jobsOf('"a"\n"b"'))
      if ('hash' in job) ledger.recall({ hash: job.hash, isOk: true })
    expect(await checkJobs(jobsOf('"a"\n"b"\n\n"c"\n"a"', prepare, ledger), 'it')).toEqual({
      lines: 4,
      left: 2,
    })
    expect(await checkJobs(jobsOf(''), 'it')).toEqual({ lines: 0, left: 0 })
  })

  test('every bad line and every id used twice is named', async () => {
    const lines = ['"ok"', 'hello', '{"id":1,"prompt":"p"}', '{"prompt":7}', '{"id":"1","prompt":"q"}', '"x']
    const error = await refusal(lines.join('\n'))
    expect(error).toMatchObject({ kind: 'usage', message: 'prompts.ndjson: 4 problems' })
    expect(error.details).toEqual({
      problems: [
        'line 2: it is not JSON: column 1: value expected',
        'line 4: its "prompt" must be a text',
        'line 5: its id "1" was used before',
        'line 6: it is not JSON: column 3: unclosed text',
      ],
      consequence: 'jq -R . makes a JSON text of each line of plain text',
    })
  })

  test('one alone is told in the message, and jq only where it helps', async () => {
    const error = await refusal('"ok"\n{"a":1}\n')
    expect(error.message).toMatch(/^prompts.ndjson: line 2: it must be a prompt in quotes/)
    expect(error.details.consequence).toBeUndefined()
  })

  test('what makes no request is bad too', async () => {
    const error = await refusal('"ok"\n{"contents":5}\n', (form, index) => {
      if ('body' in form) throw usageProblems('the body', ['contents: must be a list', 'x: is odd'])
      return prepare(form, index)
    })
    expect(error.message).toBe(
      'prompts.ndjson: line 2: the body: 2 problems: contents: must be a list; x: is odd',
    )
  })

  test("a failure that is not the line's fault is thrown as it is", async () => {
    const broken = () => Promise.reject(new TypeError('a bug'))
    await expect(checkJobs(jobsOf('"a"', broken), 'it')).rejects.toThrow(TypeError)
  })

  test('no more problems are gathered than are counted', async () => {
    let made = 0
    async function* endless() {
      while (made < 1e6) {
        made++
        yield Buffer.from('bad\n')
      }
    }
    const check = checkJobs(readJobs(readLines(endless()), prepare, createLedger()), 'stdin')
    await expect(check).rejects.toThrow('stdin: more than 1000 problems')
    expect(made).toBeLessThan(1100)
  })
})
