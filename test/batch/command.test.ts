import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { realTimers } from '../../src/timers.ts'
import type { Exchange, HttpRequest } from '../../src/wire/exchange.ts'
import { messageStop, textDelta } from '../faults/answers.ts'
import { imageAnswer, inline, png } from '../gateway/image/image.ts'
import { piece, whole } from '../gateway/parts.ts'
import { createIdleClock } from '../harness/clock.ts'
import { answerInOrder, breaking, unreachable } from '../harness/responses.ts'
import {
  answering,
  createInterrupt,
  message,
  ownerOnlyMode,
  readJson,
  readText,
  rejected,
  run,
} from '../harness/run.ts'
import { createFailingStdout } from '../harness/stdout.ts'
import { batchFolder, indexes, inOrder, parseResults, upTo } from './pieces.ts'

const batch = ['chat', '--batch', 'in.ndjson']
const results = [...batch, '--results', 'r.ndjson']
const resultsOf = (cwd: string) => parseResults(readText(cwd, 'r.ndjson'))
const promptOf = (request: HttpRequest) => /p (\d+)/.exec(Buffer.from(request.body ?? []).toString())?.[1]

/** Answers each prompt by its number. A prompt without an entry succeeds. */
function byPrompt(answers: Record<string, Exchange>): Exchange {
  return (request, onSent) => {
    onSent?.()
    const number = promptOf(request) ?? ''
    return (answers[number] ?? answering(message(`answer ${number}`)))(request, onSent)
  }
}

const status = (code: number, headers: Record<string, string> = {}) =>
  answering('{"error":{"type":"x","message":"no"}}', { status: code, headers })

describe('requests of a batch', () => {
  test('--batch applies prompt words and flags to each line, whatever its form', async () => {
    const body = '{"contents":[{"role":"user","parts":[{"text":"own"}]}]}'
    const cwd = batchFolder([
      '{"id":7,"prompt":"a text","model":"m1"}',
      '',
      `{"custom_id":"c","method":"POST","url":"/v1","body":${body}}`,
    ])
    const { out, requests } = await run([...batch, 'Say', '--temperature', '0.5', '-m', 'mine'], { cwd })
    expect(parseResults(out).map(({ index, id, ok }) => [index, id, ok])).toEqual([
      [1, 7, true],
      [3, 'c', true],
    ])
    const config = { generationConfig: { temperature: 0.5 } }
    const say = { text: 'Say' }
    expect(requests.map(({ url, text }) => [/models\/(\w+)/.exec(url)?.[1], JSON.parse(text)])).toEqual([
      ['m1', { contents: [{ role: 'user', parts: [say, { text: 'a text' }] }], ...config }],
      ['mine', { contents: [...JSON.parse(body).contents, { role: 'user', parts: [say] }], ...config }],
    ])
  })

  test('--batch with an invalid line sends nothing and lists every invalid line', async () => {
    const cwd = batchFolder([
      '"good"',
      ...['plain text', '{"prompt":"a","model":".."}', '{"custom_id":"c","body":{"contents":"no"}}'],
    ])
    const ended = await run(results, { cwd })
    expect(ended).toMatchObject(rejected(2, /: 3 problems.*line 2: it is not JSON/s))
    expect(ended.err).toMatch(/line 3: the model must not be '..'.*line 4: its body.*contents.*jq -R/s)
    expect(readdirSync(cwd)).toEqual(['in.ndjson'])
    const json = await run([...batch, '--errors', 'json'], { cwd })
    expect(JSON.parse(json.err).error).toMatchObject({ kind: 'usage', exit: 2, sent: 'no' })
  })

  test('--batch sends the lines before an invalid line if it reads a pipe', async () => {
    const argv = ['chat', '--batch', '-', '--errors', 'json']
    const ended = await run(argv, { stdin: '"p 1"\n"p 2"\nbad\n"p 4"\n' })
    expect([ended.code, indexes(parseResults(ended.out)), ended.requests.length]).toEqual([2, [1, 2], 2])
    // Two requests were sent before the invalid third line was read.
    expect(JSON.parse(ended.err).error).toMatchObject({ kind: 'usage', exit: 2, sent: 'yes' })
  })

  test('--batch FILE adds piped text after the prompt words, and does not read stdin without words', async () => {
    const cwd = batchFolder('"p 1"\n')
    const stdin = 'piped'
    const ended = await run([...batch, 'Say'], { cwd, stdin })
    const parts = JSON.parse(ended.requests[0]?.text ?? '{}').contents[0].parts
    expect(parts).toEqual([{ text: 'Say' }, { text: stdin }, { text: 'p 1' }])
    for (const flags of [[], ['Say', '--no-stdin']]) {
      const { requests } = await run([...batch, ...flags], { cwd, stdin })
      expect(requests.map(({ text }) => text)).toEqual([expect.not.stringContaining(stdin)])
    }
    const empty = await run([...batch, 'Say', '--fail-on-empty'], { cwd, stdin: '' })
    expect(empty).toMatchObject({ code: 2, requests: [] })
  })

  test('the lines of a pipe that --batch names /dev/stdin are not added to the words', async () => {
    const { code, requests } = await run(['chat', '--batch', '/dev/stdin', 'Say'], { stdin: '"p 1"\n' })
    const texts = requests.map(({ text }) => JSON.parse(text).contents[0].parts)
    expect({ code, texts }).toEqual({ code: 0, texts: [[{ text: 'Say' }, { text: 'p 1' }]] })
  })

  test('--batch - allows no other reader of stdin', async () => {
    for (const flags of ['-', '-f -', '--no-stdin'])
      expect(await run(['chat', '--batch', '-', ...flags.split(' ')], { stdin: '"a"' })).toMatchObject({
        code: 2,
        requests: [],
      })
  })

  test.each([
    ['-i x.json', 2],
    ['-o x', 2],
    ['--concurrency 0', 2],
    ['--results no-such-folder/r', 11],
    ['--results /dev/null --resume', 11],
  ])('with the unusable flags %s, --batch exits with %i and sends nothing', async (flags, code) => {
    const ended = await run([...batch, ...flags.split(' ')], { cwd: batchFolder(2) })
    expect(ended).toMatchObject({ code, out: '', requests: [] })
    expect(ended.err).toMatch(code === 11 ? /^parley: .*\n {2}nothing was sent\n$/ : /^parley: /)
  })

  test.each(['none.ndjson', '.'])('--batch exits with 11 if its input is %s', async (name) => {
    expect(await run(['chat', '--batch', name])).toMatchObject({ code: 11, out: '', requests: [] })
  })

  test('--batch exits with 3 and sends nothing if a setting is missing', async () => {
    const cwd = batchFolder(20)
    for (const name of ['PARLEY_BASE_URL', 'PARLEY_ACCESS_TOKEN']) {
      const ended = await run(results, { cwd, env: { [name]: '' } })
      expect(ended).toMatchObject({ code: 3, out: '', requests: [] })
      expect(existsSync(join(cwd, 'r.ndjson'))).toBe(false)
    }
  })

  test('--batch --dry-run prints one request per line and sends nothing', async () => {
    const cwd = batchFolder(3)
    const ended = await run([...batch, '--dry-run'], { cwd, env: { PARLEY_ACCESS_TOKEN: '' } })
    expect([ended.code, ended.requests]).toEqual([0, []])
    const texts = parseResults(ended.out).map((line) => JSON.stringify(line).match(/p \d/)?.[0])
    expect(texts).toEqual(['p 1', 'p 2', 'p 3'])
  })
})

test('--batch prints results on stdout, and a line with the numbers of successful and failed lines on stderr', async () => {
  const { code, out, err, requests } = await run(batch, { cwd: batchFolder(40) })
  const lines = parseResults(out)
  expect([code, indexes(lines), requests.length]).toEqual([0, upTo(40), 40])
  const fields = 'index,id,hash,ok,text,model,stopReason,usage,attempts,seconds'
  expect(Object.keys(lines[0] ?? {}).join()).toBe(fields)
  expect(err).toMatch(/^parley: 40 ok · 0 failed · [\d,]+ tokens · \d+ (s|min|h)/)
  for (const flags of [['-q'], ['--errors', 'json']])
    expect((await run([...batch, ...flags], { cwd: batchFolder(2) })).err).toBe('')
})

test('a failed batch line has a result, and the first failed line decides the exit code', async () => {
  const exchange = byPrompt({ 4: status(400), 2: status(500), 6: answering('<html>') })
  const ended = await run([...batch, '--retries', '0', '--errors', 'json'], { cwd: batchFolder(8), exchange })
  expect(ended.code).toBe(7)
  const failed = parseResults(ended.out).filter(({ ok }) => !ok)
  expect(failed.map(({ index, error }) => [index, error?.kind, error?.status])).toEqual([
    [2, 'service', 500],
    [4, 'refused', 400],
    [6, 'response', 200],
  ])
  const { message, ...error } = JSON.parse(ended.err).error
  // The web page of line 6 may come from another server.
  expect(error).toMatchObject({ exit: 7, sent: 'unknown' })
  expect(message).toMatch(/^3 of 8 requests failed, such as line 2: the gateway answered 500/)
})

test('a batch that gets only login pages does not report that its requests arrived', async () => {
  const cwd = batchFolder(2)
  const world = { cwd, exchange: answering('<html>') }
  const { err } = await run([...batch, '--errors', 'json', '--report', 'report.json'], world)
  expect([JSON.parse(err).error.sent, readJson(cwd, 'report.json').sent]).toEqual(['unknown', 'unknown'])
})

test.each([
  [401, 3],
  [402, 5],
])('a batch starts no further request after a %d', async (code, exit) => {
  const cwd = batchFolder(50)
  const exchange = byPrompt({ 3: status(code) })
  const ended = await run([...results, '--concurrency', '4'], { cwd, exchange })
  expect(ended.code).toBe(exit)
  expect(ended.requests.length).toBeLessThanOrEqual(8)
  expect(resultsOf(cwd).map(({ ok }) => ok)).toContain(false)
  expect(resultsOf(cwd)).toHaveLength(ended.requests.length)
  expect(ended.err).toMatch(/not done.*; to resume: the same command with --resume\n/)
})

test('a 429 pauses all lines of a batch and fails none', async () => {
  const refused = new Set(['1', '2', '3', '4'])
  const exchange: Exchange = async (request, onSent) => {
    onSent?.()
    const isRefused = refused.delete(promptOf(request) ?? '')
    return (isRefused ? status(429, { 'retry-after': '2' }) : answering(message('hi')))(request)
  }
  const timers = createIdleClock()
  const argv = [...batch, '--concurrency', '4', '--retries', '0']
  const ended = await run(argv, { cwd: batchFolder(12), exchange, timers })
  expect([ended.code, indexes(parseResults(ended.out)), ended.requests.length]).toEqual([0, upTo(12), 16])
  expect(ended.err.match(/all requests wait 2\.0 s, then at most 2 run at a time/g)).toHaveLength(1)
  expect(parseResults(ended.out).map(({ attempts }) => attempts)).toEqual([2, 2, 2, 2, ...Array(8).fill(1)])
})

test('a batch renews a rejected secret once for all running requests (needs sh)', async () => {
  const env = {
    PARLEY_ACCESS_TOKEN: '',
    PARLEY_ACCESS_TOKEN_COMMAND: 'echo x >> runs; echo token-$(wc -l < runs | tr -d " ")-0123456789',
    PATH: process.env.PATH ?? '',
  }
  let count = 0
  const exchange: Exchange = async (request, onSent) => {
    onSent?.()
    await new Promise((resolve) => setTimeout(resolve, 1))
    const isFirstToken = request.headers.Authorization?.includes('token-1')
    return (isFirstToken === ++count <= 20 ? answering(message('hi')) : status(401))(request)
  }
  const cwd = batchFolder(40)
  const ended = await run([...batch, '--concurrency', '8'], { cwd, env, exchange })
  expect([ended.code, parseResults(ended.out).filter(({ ok }) => ok).length]).toEqual([0, 40])
  expect(readText(cwd, 'runs')).toBe('x\nx\n')
})

describe('--results and --resume', () => {
  test('--resume continues a batch after a failed line and an incomplete result', async () => {
    const cwd = batchFolder(10)
    const first = await run([...results, '--retries', '0'], { cwd, exchange: byPrompt({ 3: status(500) }) })
    expect(first.code).toBe(7)
    const file = join(cwd, 'r.ndjson')
    expect(statSync(file).mode & 0o777).toBe(ownerOnlyMode)
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const last = JSON.parse(lines.at(-1) ?? '').index
    // Cuts the last line.
    writeFileSync(file, `${lines.join('\n').slice(0, -20)}`)
    const second = await run([...results, '--resume'], { cwd })
    expect(second.code).toBe(0)
    expect(second.requests.map(promptOf).sort()).toEqual([`${last}`, '3'].sort())
    expect(second.err).toMatch(/2 ok · 0 failed · 8 already done · 62 tokens in this run, \d+ in all ·/)
    expect(indexes(inOrder(resultsOf(cwd).filter(({ ok }) => ok)))).toEqual(upTo(10))
    const third = await run([...results, '--resume'], { cwd })
    expect([third.code, third.requests, third.out]).toEqual([0, [], ''])
  })

  test.each([
    [500, false],
    [429, true],
  ])('after a deadline in the pause of a %d, a batch has "safeToRetry": %s', async (code, isSafe) => {
    const argv = [...results, '--resume', '--deadline', '6', '--concurrency', '4', '--errors', 'json']
    const cwd = batchFolder(9)
    const ended = await run(argv, { cwd, exchange: status(code), timers: createIdleClock() })
    expect([ended.code, readText(cwd, 'r.ndjson')]).toEqual([15, ''])
    expect(JSON.parse(ended.err).error).toMatchObject({ sent: 'yes', retry: 'later', safeToRetry: isSafe })
  })

  test('if a signal ends a batch in the pause after a 500, the message counts requests that may be billed', async () => {
    const { onSignal, interrupt } = createInterrupt()
    const argv = [...results, '--resume', '--concurrency', '4', '--errors', 'json']
    const printed = await new Promise<string>((resolve) => {
      const exchange: Exchange = (request, onSent) => {
        // After four failed lines, only one line at a time tests the service.
        if (promptOf(request) === '6') {
          resolve(interrupt(143))
          return new Promise(() => {})
        }
        onSent?.()
        return status(500)(request)
      }
      void run(argv, { cwd: batchFolder(9), exchange, onSignal, timers: createIdleClock() })
    })
    const { message, safeToRetry } = JSON.parse(printed).error
    expect([message, safeToRetry]).toEqual([
      expect.stringContaining('9 not done · 3 s; 5 requests without an answer may be billed; to resume:'),
      false,
    ])
  })

  test.each([
    ['warns', ['garbage'], 'line 2 is not a result, so its request may be sent again'],
    [
      'warns',
      ['', '{"index":2,"ha', '{}'],
      '2 lines, from line 3, are not results, so their requests may be sent again',
    ],
    ['does not warn', ['', ' '], undefined],
  ])('--resume %s, also with -q, if the results file contains the lines %j', async (_, lines, warning) => {
    const cwd = batchFolder(2)
    await run(results, { cwd })
    const before = readText(cwd, 'r.ndjson').split('\n')
    writeFileSync(join(cwd, 'r.ndjson'), before.toSpliced(1, 1, ...lines).join('\n'))
    const { code, err, requests } = await run([...results, '--resume', '-q'], { cwd })
    expect([code, requests.length]).toEqual([0, 1])
    expect(err).toBe(warning === undefined ? '' : `parley: r.ndjson: ${warning}\n`)
  })

  test('a batch without --resume exits with 11 if its results file exists', async () => {
    const cwd = batchFolder(2)
    writeFileSync(join(cwd, 'r.ndjson'), 'mine')
    const refused = rejected(11, /\n {2}nothing was sent\n$/)
    for (const flags of [[], ['--resume']])
      expect(await run([...results, ...flags], { cwd })).toMatchObject(refused)
    expect(readText(cwd, 'r.ndjson')).toBe('mine')
  })

  test('Y225: --resume recognizes moved lines by their hashes, and their results keep the old line numbers', async () => {
    const cwd = batchFolder('"p 1"\n"p 2"\n"p 2"\n')
    const exchange = byPrompt({})
    await run([...results, '--resume'], { cwd, exchange })
    writeFileSync(join(cwd, 'in.ndjson'), '"p 9"\n"p 1"\n"p 2"\n"p 2"\n')
    const { code, requests } = await run([...results, '--resume'], { cwd, exchange })
    expect({ code, prompts: requests.map(promptOf) }).toEqual({ code: 0, prompts: ['9'] })
    expect(new Set(resultsOf(cwd).map(({ hash }) => hash)).size).toBe(4)
    expect(indexes(resultsOf(cwd)).toSorted()).toEqual([1, 1, 2, 3])
  })

  test('--resume exits with 2 and sends nothing if an id of the results belongs to another request in the input', async () => {
    const cwd = batchFolder(3)
    await run(results, { cwd })
    writeFileSync(join(cwd, 'in.ndjson'), '{"id":"i1","prompt":"p 1"}\n{"id":"i2","prompt":"changed"}\n')
    expect(await run([...results, '--resume'], { cwd })).toMatchObject(rejected(2, /line 2: .*"i2"/))
    expect(resultsOf(cwd)).toHaveLength(3)
  })
})

describe('B12: progress lines of a batch without a terminal', () => {
  /** Runs four lines that take 25 s each, the last one four minutes. */
  async function takeLong(more: string[], world: { tty?: 'stderr'[] } = {}) {
    const timers = createIdleClock()
    const exchange: Exchange = async (request) => {
      await timers.wait(promptOf(request) === '4' ? 240_000 : 25_000)
      return (promptOf(request) === '2' ? status(400) : answering(message('hi')))(request)
    }
    const argv = [...batch, '--concurrency', '1', '--timeout', '0', ...more]
    return run(argv, { cwd: batchFolder(4), exchange, timers, ...world })
  }
  const progressLines = (err: string) => err.split('\n').filter((line) => line.includes('still at work'))

  test('B12: a batch prints a progress line each minute', async () => {
    const { code, err } = await takeLong([])
    expect(code).toBe(4)
    expect(progressLines(err)).toEqual([
      expect.stringMatching(/^parley: still at work after 1 min: 2 of 4 done · 1 failed · /),
      ...[2, 3, 4, 5].map((at) => expect.stringContaining(`after ${at} min: 3 of 4 done · 1 failed · `)),
    ])
  })

  test('B12: a batch prints no progress line with -q or on a terminal', async () => {
    expect(progressLines((await takeLong(['-q'])).err)).toEqual([])
    expect(progressLines((await takeLong([], { tty: ['stderr'] })).err)).toEqual([])
  })
})

describe('the end of a batch', () => {
  test('if the deadline cancels a batch request, its result shows whether the request was sent or partly answered', async () => {
    const stalled = breaking('{"candidates":[', () => new Promise(() => {}))
    const exchange: Exchange = async (request, onSent) => {
      const phase = promptOf(request)
      if (phase !== '1') onSent?.()
      if (phase === '3') return stalled(request)
      return new Promise(() => {})
    }
    const cwd = batchFolder(3)
    const ended = await run([...results, '--deadline', '3s'], { cwd, exchange, timers: createIdleClock() })
    expect(ended.code).toBe(15)
    const late = { message: 'the deadline passed', retry: 'later', deadline: true }
    expect(inOrder(resultsOf(cwd)).map(({ error }) => error)).toMatchObject([
      { ...late, kind: 'not-sent', exit: 9, sent: 'no', safeToRetry: true },
      { ...late, kind: 'unknown', exit: 10, sent: 'unknown', safeToRetry: false },
      { ...late, kind: 'response', exit: 8, sent: 'yes', safeToRetry: false, body: '{"candidates":[' },
    ])
    const again = await run([...results, '--resume'], { cwd, exchange: byPrompt({}) })
    expect([again.code, again.requests.length]).toEqual([0, 3])
  })

  const resumed = ['--results', 'r', '--resume']
  test.each<[retry: string, what: string, flags: string[], statuses: Record<string, number>, object]>([
    ['never', 'some lines were answered', [], { 2: 500 }, { safeToRetry: false, sent: 'yes' }],
    ['later', '--resume skips the answered lines', resumed, { 2: 500 }, {}],
    ['later', '--resume repeats a temporary failure', resumed, { 1: 400, 2: 500 }, { kind: 'service' }],
    ['never', 'all failures are permanent', resumed, { 1: 400, 3: 404 }, { kind: 'refused' }],
    ['later', 'no line was answered', [], { 1: 500, 2: 500, 3: 500 }, {}],
    ['never', 'it has --results without --resume', ['--results', 'r'], { 1: 500, 2: 500, 3: 500 }, {}],
  ])('a failed batch reports "retry": "%s" if %s', async (retry, _, flags, statuses, error) => {
    const exchange = byPrompt(
      Object.fromEntries(Object.entries(statuses).map(([at, code]) => [at, status(code)])),
    )
    const argv = [...batch, '--retries', '0', '--concurrency', '1', '--errors', 'json', ...flags]
    const { err } = await run(argv, { cwd: batchFolder(3), exchange })
    expect(JSON.parse(err).error).toMatchObject({ retry, ...error })
  })

  test('if the service is unreachable until the deadline, the message of a batch names the deadline and the connection error', async () => {
    const cwd = batchFolder(3)
    const argv = [...batch, '--deadline', '3s']
    const runOnce = (...flags: string[]) =>
      run([...argv, ...flags], { cwd, exchange: unreachable, timers: createIdleClock() })
    const { message, ...error } = JSON.parse((await runOnce('--errors', 'json')).err).error
    expect(error.hints).toEqual(['nothing was sent'])
    expect(message).toBe('the deadline passed; before that, the connection was refused')
    expect(error).toMatchObject({ kind: 'stopped', exit: 15, sent: 'no', safeToRetry: true, retry: 'later' })
    const again = await runOnce()
    expect(again.code).toBe(15)
    expect(again.err).toContain('0 ok · 0 failed · 3 not done · 3 s\n')
  })

  test('a batch that stops after an answer does not report that nothing was sent', async () => {
    const cwd = batchFolder(3)
    const exchange = byPrompt({ 2: unreachable, 3: unreachable })
    const argv = [...results, '--concurrency', '1', '--errors', 'json', '--report', 'report.json']
    const ended = await run(argv, { cwd, exchange, timers: createIdleClock() })
    const known = { kind: 'not-sent', sent: 'yes', retry: 'never' }
    const { error } = JSON.parse(ended.err)
    expect(error).toMatchObject({ ...known, safeToRetry: false })
    expect(error.message).toMatch(/^the connection was refused; no request succeeded since the pauses began/)
    expect(ended.err).not.toContain('nothing was sent')
    expect(readJson(cwd, 'report.json')).toMatchObject(known)
  })

  test.each<[retry: string, what: string, silent: string, flags: string[], error: object]>([
    ['later', 'no line has a result', '1', [], { sent: 'unknown', safeToRetry: false }],
    ['never', 'the results file has a line', '2', [], { sent: 'unknown', safeToRetry: false }],
    ['later', 'it has --resume', '2', ['--resume'], { sent: 'yes', safeToRetry: true }],
  ])('Y231: an interrupted batch reports "retry": "%s" if %s', async (retry, _, silent, flags, error) => {
    const { onSignal, interrupt } = createInterrupt()
    const cwd = batchFolder(2)
    const printed = await new Promise<string>((resolve) => {
      const exchange: Exchange = (request, onSent) => {
        const isSilent = promptOf(request) === silent
        // With --resume, the signal arrives before the second request is sent.
        if (!isSilent || flags.length === 0) onSent?.()
        if (!isSilent) return answering(message('hi'))(request)
        resolve(interrupt(143))
        return new Promise(() => {})
      }
      void run([...results, ...flags, '--concurrency', '1', '--errors', 'json'], { cwd, exchange, onSignal })
    })
    expect(JSON.parse(printed).error).toMatchObject({ retry, ...error })
    expect(existsSync(join(cwd, 'r.ndjson'))).toBe(silent === '2')
  })

  /** Returns the path that a failure names. */
  const savedIn = (err: string) => /the received data is saved as (\S+)/.exec(err)?.[1] ?? 'no path'

  test.each<[string, number, string[], string, string]>([
    ['is a full disk', 0, [], 'ENOSPC', 'no space left on the disk'],
    ['is full after one result', 1, ['--concurrency', '1'], 'ENOSPC', 'no space left on the disk'],
    ['has no reader', 1, ['--concurrency', '1'], 'EPIPE', 'its reader closed the pipe'],
  ])('a batch saves results for --resume if stdout %s', async (_, taken, flags, errorCode, why) => {
    const cwd = batchFolder(3)
    const world = { cwd, env: { TMPDIR: cwd }, exchange: byPrompt({}) }
    const stdout = createFailingStdout(taken, errorCode)
    const argv = [...batch, ...flags, '--report', 'report.json']
    const { code, err, requests } = await run(argv, { ...world, stdout })
    expect(code).toBe(11)
    const path = savedIn(err)
    expect(statSync(path).mode & 0o777).toBe(ownerOnlyMode)
    const saved = parseResults(readFileSync(path, 'utf8'))
    expect(saved.length).toBe(requests.length - taken)
    expect(saved).toEqual(saved.map(({ index }) => expect.objectContaining({ text: `answer ${index}` })))
    const left = 3 - requests.length
    const counts = `${requests.length} ok · 0 failed · ${saved.length} of these saved elsewhere`
    expect(err).toContain(`parley: ${counts}${left > 0 ? ` · ${left} not done` : ''} · `)
    const advice =
      'write the printed results, then the saved results, to a FILE, and run the same command with --results FILE --resume'
    const last = `\nparley: stdout: ${why}; the received data is saved as ${path}\n  to resume: ${advice}\n`
    expect(err.endsWith(last)).toBe(true)
    const { counts: reported } = readJson(cwd, 'report.json')
    expect(reported).toMatchObject({ ok: requests.length, failed: 0, notDone: left })
    const again = await run([...batch, '--results', path, '--resume'], world)
    expect([again.code, again.requests.length]).toEqual([0, 3 - saved.length])
  })

  test('a batch saves its results if stdout accepts none before the deadline', async () => {
    const cwd = batchFolder(2)
    const world = { cwd, env: { TMPDIR: cwd }, exchange: byPrompt({}), timers: createIdleClock() }
    const argv = [...batch, '--deadline', '5']
    const { code, err } = await run(argv, { ...world, stdout: createFailingStdout(0, undefined) })
    expect(code).toBe(15)
    const saved = inOrder(parseResults(readFileSync(savedIn(err), 'utf8')))
    expect(saved.map(({ text }) => text)).toEqual(['answer 1', 'answer 2'])
  })

  test('the JSON error of a batch contains the results if neither stdout nor the temporary folder accepts them', async () => {
    const cwd = batchFolder(1)
    const world = { cwd, env: { TMPDIR: join(cwd, 'gone') }, exchange: byPrompt({}) }
    const stdout = createFailingStdout(0, 'ENOSPC')
    const { code, err } = await run([...batch, '--errors', 'json'], { ...world, stdout })
    const { error } = JSON.parse(err)
    expect([code, error.kept]).toEqual([11, undefined])
    expect(error.message).toMatch(/; the received data could not be saved in .*gone: no such file or folder$/)
    expect(parseResults(error.body)).toMatchObject([{ index: 1, text: 'answer 1' }])
  })

  test('a batch saves the results that neither the results file nor stdout accepts', async () => {
    const cwd = batchFolder(3)
    const second: Exchange = (...call) => {
      rmSync(join(cwd, 'r.ndjson'))
      return answering(message('two'))(...call)
    }
    const world = { cwd, env: { TMPDIR: cwd }, exchange: byPrompt({ 2: second }) }
    const stdout = createFailingStdout(0, 'ENOSPC')
    const { code, err } = await run([...results, '--concurrency', '1'], { ...world, stdout })
    expect(code).toBe(11)
    expect(err).toMatch(
      /parley: r\.ndjson: it was removed while.*\n {2}to resume: append the saved results to r\.ndjson, then/,
    )
    expect(parseResults(readFileSync(savedIn(err), 'utf8'))).toMatchObject([{ index: 2, text: 'two' }])
  })

  test.each([
    ['a file', 'in.ndjson', undefined],
    ['a pipe', '-', '\n'],
  ])('a batch from %s without lines exits with 0, or 2 with --fail-on-empty', async (_, name, stdin) => {
    const world = { cwd: batchFolder('\n\n'), ...(stdin === undefined ? {} : { stdin }) }
    const argv = ['chat', '--batch', name]
    const note = /: it has no line with a request, so nothing was sent\n/
    expect(await run(argv, world)).toMatchObject(rejected(0, note))
    expect(await run([...argv, '--fail-on-empty'], world)).toMatchObject(rejected(2, note))
    const unread = await run([...argv, '--fail-on-empty', '--no-stdin'], world)
    expect(unread.err).toMatch(name === '-' ? /--no-stdin/ : note)
  })
})

test.each<[string, (file: string) => void]>([
  ['B02: a removed results file', (file) => rmSync(file)],
  [
    'B03: a replaced results file',
    (file) => {
      writeFileSync(`${file}.new`, 'mine')
      renameSync(`${file}.new`, file)
    },
  ],
  ['B03: an emptied results file', (file) => truncateSync(file)],
])('%s ends a batch with exit code 11 before its next request', async (_, act) => {
  const cwd = batchFolder(40)
  const file = join(cwd, 'r.ndjson')
  let count = 0
  const exchange: Exchange = async (request) => {
    if (++count === 10) act(file)
    return answering(message('hi'))(request)
  }
  const { code, err } = await run([...results, '--concurrency', '2'], { cwd, exchange })
  expect([code, count]).toEqual([11, expect.toSatisfy((sent) => sent < 14)])
  expect(err).toMatch(/r\.ndjson: it was (removed|replaced|made shorter)/)
  if (existsSync(file)) expect(readFileSync(file, 'utf8')).toMatch(/^(mine)?$/)
})

test('B04, B05: --resume repeats no finished line of a results file with a byte order mark, CRLF and an incomplete last line', async () => {
  const cwd = batchFolder(5)
  await run(results, { cwd })
  writeFileSync(join(cwd, 'r.ndjson'), `\ufeff${readText(cwd, 'r.ndjson').replaceAll('\n', '\r\n')}{"ind`)
  const ended = await run([...results, '--resume'], { cwd })
  expect([ended.code, ended.requests, ended.out]).toEqual([0, [], ''])
  expect(ended.err).toMatch(/5 already done/)
})

test.each([
  ['JSON that starts like a result', '{"index":1,"id":"precious"}'],
  ['an incomplete JSON line that is not a result', '{"index":{"a":1},"doc":"prec'],
  ['plain text', 'precious'],
])('B11: --resume does not remove %s from the end of the results file', async (_, last) => {
  const cwd = batchFolder(2)
  const argv = [...results, '--resume']
  const resume = (text: string) => {
    writeFileSync(join(cwd, 'r.ndjson'), text)
    return run(argv, { cwd })
  }
  expect(await resume(last)).toMatchObject({ code: 11, requests: [], out: '' })
  expect(readText(cwd, 'r.ndjson')).toBe(last)
  const before = `{"index":9,"hash":"h","ok":true}\n${last}`
  expect((await resume(before)).code).toBe(0)
  expect(readText(cwd, 'r.ndjson').startsWith(`${before}\n{"index":1,`)).toBe(true)
})

const call = '{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}'

test.each([
  ['JSON of an unknown form', '{"output":"paid for"}', { output: 'paid for' }],
  ['JSON without text', call, call],
])('a batch result contains the whole answer if the answer is %s', async (_, answer, body) => {
  const cwd = batchFolder(1)
  const { code, out } = await run(batch, { cwd, exchange: answering(answer) })
  expect(code).toBe(8)
  expect(JSON.parse(out)).toMatchObject({ ok: false, error: { kind: 'response', body } })
  expect(readdirSync(cwd)).toEqual(['in.ndjson'])
})

test('if a bug in parley stops the reading of an answer, a batch exits with 1, and the result has the received part', async () => {
  for (const start of ['{"content":"paid', textDelta('paid')]) {
    const body = start === textDelta('paid') ? 'paid' : start
    const exchange = byPrompt({ 1: breaking(start, () => new TypeError('a bug')) })
    const ended = await run([...batch, '--concurrency', '1'], { cwd: batchFolder(3), exchange })
    expect([ended.code, ended.requests.length]).toEqual([1, 1])
    expect(parseResults(ended.out)).toMatchObject([{ error: { kind: 'unexpected', status: 200, body } }])
    expect(ended.err).toMatch(/a bug in parley \S+: TypeError at /)
  }
})

test('B09: "attempts" counts the requests for one line in a batch result, and the requests for all lines in the failure', async () => {
  const runWith = (...answers: Exchange[]) => {
    const exchange = byPrompt({ 2: answerInOrder(...answers) })
    return run([...batch, '--errors', 'json'], { cwd: batchFolder(3), exchange })
  }
  const ended = await runWith(status(500), status(429), status(500), status(429), answering(message('late')))
  expect(inOrder(parseResults(ended.out)).map(({ attempts }) => attempts)).toEqual([1, 5, 1])
  const failed = await runWith(status(429), status(500), status(500), status(500))
  expect(failed.code).toBe(7)
  expect(inOrder(parseResults(failed.out))[1]?.error).toMatchObject({ attempts: 4 })
  expect(JSON.parse(failed.err).error.attempts).toBe(6)
  const refused = await runWith(status(401))
  expect(JSON.parse(refused.err).error.attempts).toBe(refused.requests.length)
})

describe('tokens of failed answers', () => {
  // The schema check runs in a thread, so a fast test clock could exceed its time limit.
  const inTime = { timers: realTimers }
  const cut = message('cut', { stop_reason: 'max_tokens' })
  const schema = (cwd: string) => writeFileSync(join(cwd, 's.json'), '{"type":"object"}')
  // Each answer takes 8 tokens.
  const budget = ['--max-total-tokens', '40', '--concurrency', '2']
  const checks: [string, string[], string][] = [
    ['--fail-on-cut', ['--fail-on-cut'], cut],
    ['--schema', ['--schema', 's.json'], message('no JSON')],
  ]

  test.each(checks)(
    'B10: --max-total-tokens counts answers that failed because of %s, also with --resume',
    async (_, flags, answer) => {
      const world = { ...inTime, cwd: batchFolder(40), exchange: answering(answer) }
      schema(world.cwd)
      const ended = await run([...results, ...flags, ...budget], world)
      expect([ended.code, [5, 6].includes(ended.requests.length)]).toEqual([15, true])
      expect(ended.err).toMatch(/4[08] tokens.*the limit of 40 tokens \(--max-total-tokens\)/s)
      const second = await run([...results, ...flags, ...budget, '--resume'], world)
      expect([second.code, second.requests]).toEqual([15, []])
      expect(second.err).toContain('the answers reached the limit of 40 tokens (--max-total-tokens)')
    },
  )

  test('B10: if a mismatching answer reaches --max-total-tokens, --schema-retries does not repeat the batch line', async () => {
    const cwd = batchFolder(1)
    schema(cwd)
    const argv = [...batch, '--schema', 's.json', '--schema-retries', '3', '--max-total-tokens', '8']
    const { code, out, requests } = await run(argv, { ...inTime, cwd, exchange: answering(message('no')) })
    expect([code, requests.length]).toEqual([8, 1])
    expect(parseResults(out)).toMatchObject([{ ok: false, error: { kind: 'response', body: 'no' } }])
  })

  test('B10: --max-total-tokens counts the tokens of all requests of a retried line', async () => {
    const cwd = batchFolder(1)
    schema(cwd)
    const exchange = answerInOrder(message('no'), status(429), status(500), message('{}'))
    const flags = ['--schema', 's.json', '--schema-retries', '1']
    const first = await run([...results, ...flags], { ...inTime, cwd, exchange })
    expect([first.code, resultsOf(cwd)[0]]).toEqual([
      0,
      expect.objectContaining({ attempts: 4, usage: { inputTokens: 6, outputTokens: 10, totalTokens: 16 } }),
    ])
    expect(first.err).toMatch(/16 tokens/)
    writeFileSync(join(cwd, 'in.ndjson'), '"p 7"\n')
    const second = await run([...results, '--resume', '--max-total-tokens', '16'], { cwd })
    expect([second.code, second.requests]).toEqual([15, []])
  })
})

test('the summary of a batch counts lines with a warning, and -q does not hide it then', async () => {
  const exchange = byPrompt({ 1: answering(message('half', { stop_reason: 'max_tokens' })) })
  const summary = /^parley: 2 ok \(1 with a warning\) · 0 failed · [^\n]*\n$/
  for (const flags of [[], ['-q'], ['--results', 'r.ndjson']]) {
    const ended = await run([...batch, ...flags], { cwd: batchFolder(2), exchange })
    expect(ended).toMatchObject({ code: 0, err: expect.stringMatching(summary) })
  }
  const json = await run([...batch, '-q', '--errors', 'json'], { cwd: batchFolder(2), exchange })
  expect(JSON.parse(json.err).warning).toMatch(/^2 ok \(1 with a warning\) · 0 failed/)
})

test('--resume with --fail-on-cut repeats lines whose cut answers an earlier run accepted', async () => {
  const cwd = batchFolder(8)
  const exchange = byPrompt({
    1: answering(message('half', { stop_reason: 'max_tokens' })),
    2: answering(piece('half', { finishReason: 'MAX_TOKENS' })),
    3: answering(message('half', { stop_reason: null })),
    4: answering(piece('half')),
    5: answering(message('no', { stop_reason: 'refusal' })),
    6: answering(piece('whole', whole)),
    7: answering(textDelta('whole') + messageStop, { headers: { 'content-type': 'text/event-stream' } }),
  })
  expect((await run(results, { cwd, exchange })).code).toBe(0)
  expect((await run([...results, '--resume'], { cwd, exchange })).requests).toEqual([])
  const strict = [...results, '--resume', '--fail-on-cut']
  const rejecting = await run(strict, { cwd, exchange })
  expect([rejecting.code, rejecting.requests.map(promptOf).sort()]).toEqual([8, ['1', '2', '3', '4', '5']])
  const mended = await run(strict, { cwd })
  expect(mended).toMatchObject({ code: 0, err: expect.stringContaining('5 ok · 0 failed · 3 already done') })
  expect((await run(strict, { cwd })).requests).toEqual([])
})

describe('a batch of images', () => {
  const images = ['image', '--batch', 'in.ndjson']

  test('image --batch names its files by line and prompt, never by id', async () => {
    const owl = '{"contents":[{"role":"user","parts":[{"text":"an owl"}]}]}'
    const cwd = batchFolder(['{"id":"../../evil","prompt":"A red fox"}', '"a red fox"', owl])
    const { out } = await run([...images, '-o', 'pics/', '-m', 'm'], { cwd })
    const names = ['000001-a-red-fox.png', '000002-a-red-fox.png', '000003-an-owl.png']
    expect(readdirSync(join(cwd, 'pics')).sort()).toEqual(names)
    const files = inOrder(parseResults(out)).map(({ files }) => files)
    expect(files).toEqual(names.map((name) => [`pics/${name}`]))
  })

  test.each([
    ['chat', 'image', ''],
    ['image', 'chat', ' --raw'],
  ])('--resume rejects the results of %s --batch for %s --batch%s', async (first, second, flags) => {
    const cwd = batchFolder(1)
    const rest = `--batch in.ndjson -m alpha-image --results r.ndjson --resume${flags}`.split(' ')
    const counts = []
    for (const command of [first, first, second, second])
      counts.push((await run([command, ...rest], { cwd })).requests.length)
    expect(counts).toEqual([1, 0, 1, 0])
  })

  test('if an image answer in a batch also contains an error, the failure names the saved image', async () => {
    const body = imageAnswer(inline(png())).replace(/\}$/, ',"error":{"type":"api_error","message":"no"}}')
    const { out } = await run([...images, '-m', 'm'], { cwd: batchFolder(1), exchange: answering(body) })
    const message = expect.stringMatching(/error in a successful response; received: 000001-p-1\.png: no$/)
    expect(JSON.parse(out).error).toMatchObject({ exit: 7, message })
  })

  test('a batch saves the received part of an image answer that the deadline cancels', async () => {
    const cwd = batchFolder(1)
    const exchange = breaking('{"candidates":[', () => new Promise(() => {}))
    const argv = [...images, '-m', 'm', '--deadline', '3s']
    const { out } = await run(argv, { cwd, exchange, env: { TMPDIR: cwd }, timers: createIdleClock() })
    const { kept, ...error } = JSON.parse(out).error
    expect(error).toMatchObject({ kind: 'response', sent: 'yes', deadline: true })
    expect(readFileSync(kept, 'utf8')).toBe('{"candidates":[')
  })

  test('B14: --resume repeats the request of a missing image', async () => {
    const cwd = batchFolder(3)
    const argv = [...images, '-o', 'pics/', '-m', 'm', '--results', 'r.ndjson', '--resume']
    expect((await run(argv, { cwd })).code).toBe(0)
    rmSync(join(cwd, 'pics/000002-p-2.png'))
    const again = await run(argv, { cwd })
    expect([again.code, again.requests.map(promptOf)]).toEqual([0, ['2']])
    expect(again.err).toMatch(/1 ok · 0 failed · 2 already done/)
    expect((await run(argv, { cwd })).requests).toEqual([])
    rmSync(join(cwd, 'pics'), { recursive: true })
    expect((await run(argv, { cwd })).requests).toHaveLength(3)
  })

  test('a batch result contains an image in base64 if no file can be written', async () => {
    const cwd = batchFolder(1)
    mkdirSync(join(cwd, 'o'))
    const exchange: Exchange = async (request) => {
      rmSync(join(cwd, 'o'), { recursive: true })
      writeFileSync(join(cwd, 'o'), '')
      return answering(imageAnswer(inline(png())))(request)
    }
    const argv = [...images, '-m', 'painter', '-o', 'o/']
    const { code, out } = await run(argv, { cwd, exchange, env: { TMPDIR: join(cwd, 'none') } })
    expect(code).toBe(11)
    const error = { kind: 'file', status: 200, body: png().toString('base64') }
    expect(parseResults(out)).toMatchObject([{ ok: false, error }])
  })

  test.each([
    ['chat', 'x'],
    ['image', 'x', '-m', 'm'],
    ['chat', '--batch', 'in.ndjson'],
    [...images, '-m', 'm'],
  ])('%s %s --raw accepts JSON of any form except an error', async (...argv) => {
    const cwd = batchFolder(1)
    for (const [body, code] of [
      ['{"candidates":[]}', 0],
      ['{"content":5}', 0],
      ['{"type":"error","error":{"type":"billing_error","message":"No"}}', 5],
    ] as const) {
      const ended = await run([...argv, '--raw'], { cwd, exchange: answering(body) })
      const shown = JSON.parse(ended.out)
      const printed = argv.includes('--batch') ? (shown.response ?? shown.error.body) : shown
      expect([ended.code, printed]).toEqual([code, JSON.parse(body)])
    }
  })
})
