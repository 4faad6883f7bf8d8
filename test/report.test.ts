import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { version } from '../package.json'
import type { Host } from '../src/basic-context.ts'
import { CliError } from '../src/errors.ts'
import { RunReport } from '../src/report.ts'
import { addFileToReport, ReportData } from '../src/report-data.ts'
import { createReportWriter } from '../src/report-file.ts'
import { Secrets } from '../src/secrets.ts'
import { realTimers } from '../src/timers.ts'
import { endpoints } from '../src/wire/endpoints.ts'
import { WorkTracker } from '../src/work-tracker.ts'
import { execute } from './harness/process.ts'
import { breaking } from './harness/responses.ts'
import { answering, createInterrupt, message, readText, run, temporaryFolder } from './harness/run.ts'

const read = (folder: string) => JSON.parse(readText(folder, 'r.json'))

const nullFor = (fields: string) => Object.fromEntries(fields.split(' ').map((field) => [field, null]))
const unknownUsage = {
  ...nullFor('inputTokens outputTokens cacheReadInputTokens cacheCreationInputTokens'),
  ...nullFor('reasoningTokens totalTokens'),
}

/** Fields of a report of a successful run about which nothing is known. */
const unknownReport = {
  ...{ format: 1, version, exit: 0, deadline: false, usage: unknownUsage, attempts: 0, files: [] },
  ...nullFor('kind retry message status id model stopReason requestId session cost'),
  ...nullFor('sessionUsage sessionCost toolUses warnings resume'),
}

test('--report has every field of a run, and null for an unknown value', async () => {
  const cwd = temporaryFolder()
  const headers = { 'request-id': 'req_7' }
  const exchange = answering(message('Hello', { model: 'alpha-2.5-pro-001' }), { headers })
  await run(['chat', 'hi', '--report', 'r.json'], { cwd, exchange })
  const { seconds, ...report } = read(cwd)
  expect(seconds).toBeGreaterThanOrEqual(0)
  expect(report).toEqual({
    ...unknownReport,
    command: 'chat',
    sent: 'yes',
    id: 'msg_1',
    model: 'alpha-2.5-pro-001',
    stopReason: 'end_turn',
    usage: { ...unknownUsage, inputTokens: 3, outputTokens: 5, totalTokens: 8 },
    attempts: 1,
    requestId: 'req_7',
  })
})

test('--report names the files and the session of a run, and counts the lines of a batch', async () => {
  const cwd = temporaryFolder()
  await run(['chat', 'hi', '-o', 'a.txt', '--report', 'r.json'], { cwd })
  expect(read(cwd).files).toEqual(['a.txt'])
  await run(['image', 'a fox', '-m', 'm', '-o', 'pic.png', '--report', 'r.json'], { cwd })
  expect(read(cwd)).toMatchObject({ command: 'image', files: ['pic.png'] })
  await run(['events', 'list', '-s', 'sesn_1', '--report', 'r.json'], { cwd })
  expect(read(cwd)).toMatchObject({ command: 'events list', session: 'sesn_1', model: null })
  const exchange = answering(message('Hello'))
  await run(['chat', '--batch', '-', '--report', 'r.json'], { cwd, exchange, stdin: '"a"\n"b"\n' })
  expect(read(cwd)).toMatchObject({
    attempts: 2,
    files: [],
    model: null,
    stopReason: null,
    usage: { inputTokens: 6, outputTokens: 10, totalTokens: 16, reasoningTokens: null },
    counts: { total: 2, ok: 2, warned: 0, failed: 0, skipped: 0, notDone: 0 },
  })
})

test('--report of an image batch lists the images and the file of --results', async () => {
  const cwd = temporaryFolder()
  const argv = ['image', '--batch', '-', '-m', 'm', '-o', 'o/', '--results', 'r.ndjson', '--report', 'r.json']
  await run(argv, { cwd, stdin: '"a fox"\n"a hen"\n' })
  expect(read(cwd).files.sort()).toEqual(['o/000001-a-fox.png', 'o/000002-a-hen.png', 'r.ndjson'])
  // A resumed batch without unfinished lines writes no file.
  await run([...argv, '--resume'], { cwd, stdin: '"a fox"\n"a hen"\n' })
  expect(read(cwd)).toMatchObject({ files: ['r.ndjson'], counts: { skipped: 2 } })
})

test('--report lists at most 1,000 files, and has null instead of a longer list', () => {
  const reportData = new ReportData(0)
  for (let index = 0; index < 1000; index++) addFileToReport(reportData, `${index}.png`)
  addFileToReport(reportData, '0.png')
  expect(reportData.files?.size).toBe(1000)
  addFileToReport(reportData, '1000.png')
  addFileToReport(reportData, '1001.png')
  expect(reportData.files).toBeUndefined()
})

const notReports = ['notes', '{"command":"chat"}', ' ', 'null']
test.each(notReports)('F31: --report exits with 11 and keeps a file that contains %j', async (text) => {
  const cwd = temporaryFolder({ 'r.json': text })
  for (const flags of [[], ['--bogus']]) {
    const ended = await run(['chat', 'hi', ...flags, '--report', 'r.json'], { cwd })
    expect(ended).toMatchObject({ code: flags.length === 0 ? 11 : 2, out: '', requests: [] })
    expect(ended.err).toContain('r.json: it is neither empty nor a report, so parley does not replace it')
  }
  expect(readText(cwd, 'r.json')).toBe(text)
})

test('F31: --report replaces an empty file, but not a file that another process creates during the run', async () => {
  const cwd = temporaryFolder({ 'r.json': '' })
  expect((await run(['chat', 'hi', '--report', 'r.json'], { cwd })).code).toBe(0)
  expect(read(cwd).exit).toBe(0)
  const meanwhile = await run(['chat', 'hi', '--report', 'new.json'], {
    cwd,
    exchange: (request) => {
      writeFileSync(join(cwd, 'new.json'), 'mine')
      return answering(message('Hello'))(request)
    },
  })
  expect(meanwhile.code).toBe(11)
  expect(readText(cwd, 'new.json')).toBe('mine')
})

test.each(['--dry-run', '--curl'])('%s replaces an earlier report', async (flag) => {
  const cwd = temporaryFolder()
  const argv = ['chat', 'hi', '--report', 'r.json']
  await run(argv, { cwd })
  expect((await run([...argv, flag], { cwd })).code).toBe(0)
  expect(read(cwd)).toMatchObject({ command: 'chat', exit: 0, sent: 'no', attempts: 0 })
  expect((await run([...argv, flag, '-f', 'missing'], { cwd })).code).toBe(11)
  expect(read(cwd)).toMatchObject({ exit: 11, kind: 'file', sent: 'no' })
})

const needsName = 'parley: --report needs the name of a file, such as report.json\n'

test.each([
  ['a-folder', 11, 'parley: --report a-folder: it is a folder\n  nothing was sent\n'],
  ['a-link', 11, 'a-link: it is a symbolic link: give the path of the file\n  nothing was sent\n'],
  ['missing/r.json', 11, 'missing/r.json: no such file or folder\n  nothing was sent\n'],
  ['missing/', 2, needsName],
  ['-', 2, needsName],
])('parley sends nothing if --report %s is not possible (needs symbolic links)', async (name, code, why) => {
  const cwd = temporaryFolder()
  mkdirSync(join(cwd, 'a-folder'))
  symlinkSync('elsewhere', join(cwd, 'a-link'))
  const ended = await run(['chat', 'hi', '--report', name], { cwd })
  expect(ended).toMatchObject({ code, out: '', requests: [], err: expect.stringContaining(why) })
  expect(existsSync(join(cwd, 'missing'))).toBe(false)
})

test('a successful run exits with 11 if its report cannot be written at the end', async () => {
  for (const [status, code] of Object.entries({ 200: 11, 400: 4 })) {
    const cwd = temporaryFolder()
    const ended = await run(['chat', 'hi', '--report', 'r.json'], {
      cwd,
      exchange: (request) => {
        mkdirSync(join(cwd, 'r.json'))
        return answering(message('Hello'), { status: Number(status) })(request)
      },
    })
    expect(ended.code).toBe(code)
    expect(ended.err).toContain('--report r.json: it is a folder')
  }
})

test('--report after -- is part of the prompt, so chat writes no report', async () => {
  const cwd = temporaryFolder()
  expect((await run(['chat', '--', 'hi', '--report', 'r.json'], { cwd })).code).toBe(0)
  expect(readdirSync(cwd)).toEqual([])
})

test.each([
  [
    'a stream',
    ['--stream'],
    'data: {"responseId":"r","usageMetadata":{"promptTokenCount":3},"candidates":[{"content":{"parts":[{"text":"paid"}]}}]}\n\n',
    'paid',
    { id: 'r', usage: { ...unknownUsage, inputTokens: 3 } },
  ],
  [
    'a stream of messages, which begins with a placeholder as its number of output tokens',
    ['--stream'],
    'data: {"type":"message_start","message":{"id":"r","usage":{"input_tokens":3,"output_tokens":1}}}\n\ndata: {"type":"content_block_delta","delta":{"type":"text_delta","text":"paid"}}\n\n',
    'paid',
    { id: 'r', usage: { ...unknownUsage, inputTokens: 3 } },
  ],
  ['a body', [], '{"content":"paid', '{"content":"paid', { id: null, usage: unknownUsage }],
])('after a signal inside %s, --report has the received facts and the saved file', async (...row) => {
  const [, flags, body, saved, facts] = row
  const cwd = temporaryFolder()
  const { onSignal, interrupt } = createInterrupt()
  let report: unknown
  const exchange = breaking(body, () => {
    expect(interrupt(143)).toBe(`parley: ${read(cwd).message}\n`)
    report = read(cwd)
  })
  await run(['chat', 'hi', '-o', 'a', '--report', 'r.json', ...flags], { cwd, exchange, onSignal })
  const message = expect.stringMatching(/^interrupted: .*; the received data is saved as a\.part$/)
  expect(report).toMatchObject({ exit: 143, kind: 'signal', message, files: ['a.part'], ...facts })
  expect(readText(cwd, 'a.part')).toBe(saved)
})

test('a signal after a failure has the message and the saved file of the failure, also in the report', async () => {
  const cwd = temporaryFolder()
  const { onSignal, interrupt } = createInterrupt()
  const argv = ['chat', 'hi', '-o', 'a', '--report', 'r.json']
  const { code, err } = await run(argv, { cwd, exchange: breaking('{"content":"paid', () => {}), onSignal })
  expect([code, err]).toEqual([8, expect.stringContaining('the received data is saved as a.part')])
  const message = `interrupted: ${read(cwd).message}`
  expect(interrupt(143)).toBe(`parley: ${message}\n`)
  expect(read(cwd)).toMatchObject({ exit: 143, kind: 'signal', message, files: ['a.part'] })
})

test('the report has the exit code 11 if stdout was closed from the start (needs sh)', async () => {
  const cwd = temporaryFolder()
  const argv = ['chat', '--profile', 'demo', 'hi', '--report', 'r.json']
  expect((await execute(argv, { cwd, before: 'exec 1>&-' })).code).toBe(11)
  expect(read(cwd)).toMatchObject({ exit: 11, kind: 'file' })
})

/** Creates a report without a run. */
function prepare() {
  const cwd = temporaryFolder()
  const [reportData, tracker, secrets] = [new ReportData(2000), new WorkTracker(), new Secrets()]
  const timers = { ...realTimers, now: () => 5250 }
  const host = { cwd, timers } as Host
  const source = { host, reportData, tracker, secrets }
  const report = new RunReport(source)
  report.readFlags(['--report', 'r.json'])
  return { cwd, reportData, tracker, secrets, source, report }
}

const interrupted = { savedFiles: ['a.part'], resumeArguments: ['events', 'run'] }
const failure = new CliError('stopped', 'interrupted: x', interrupted)
const interruption = { exit: 143, failure, isSignal: true }

test('a signal writes a report only after the run has started, and no later write replaces this report', async () => {
  const { cwd, report } = prepare()
  report.writeSync(interruption)
  expect(readdirSync(cwd)).toEqual([])
  writeFileSync(join(cwd, 'r.json'), '')
  await report.open()
  expect(readdirSync(cwd)).toEqual([])
  await report.open()
  report.writeSync(interruption)
  expect(read(cwd)).toMatchObject({ exit: 143, kind: 'signal' })
  await report.open()
  await report.write({ exit: 0 })
  report.writeSync({ exit: 0 })
  expect(read(cwd).exit).toBe(143)
})

test('parley reports once, with `sent`, that a report cannot be written', async () => {
  const why = '--report r.json: it is a folder'
  const { cwd, report, tracker } = prepare()
  await report.open()
  mkdirSync(join(cwd, 'r.json'))
  tracker.beginCall(endpoints.chat).reach('sent')
  const failure: CliError = await report.write({ exit: 0 }).catch((error) => error)
  expect(failure).toMatchObject({ kind: 'file', message: why })
  expect(failure.details).toMatchObject({ consequence: 'the report was not written', sent: 'unknown' })
  // The run reports this failure only once.
  await report.write({ exit: 0 })
})

test('F31: --report replaces a report of up to 16 MiB and keeps a longer file', () => {
  const { cwd, source } = prepare()
  createReportWriter('r.json', source)({ exit: 0 })
  const report = readText(cwd, 'r.json')
  writeFileSync(join(cwd, 'r.json'), report.padEnd(2 ** 24))
  createReportWriter('r.json', source)({ exit: 0 })
  expect(readText(cwd, 'r.json')).toBe(report)
  writeFileSync(join(cwd, 'r.json'), report.padEnd(2 ** 24 + 1))
  expect(() => createReportWriter('r.json', source)).toThrow('it is neither empty nor a report')
})

test('--report has the model, session, usage, cost, files and counts of a run, with secrets redacted', async () => {
  const { cwd, reportData, tracker, secrets, report } = prepare()
  secrets.add('canary-token')
  Object.assign(reportData, {
    command: 'events run',
    id: 'i'.repeat(201),
    model: 'model \u001b[31m \u202e\ncanary-token',
    stopReason: 'end_turn',
    session: 's1',
    requestId: 'req_1',
    attempts: 3,
    usage: { inputTokens: 0, other: 5 },
    files: ['a.png', 'b.txt \u202e'],
    figures: {
      usage: {
        runUsage: { cost: { amount: 12345678901234567890n, currency: 'USD' } },
        sessionUsage: { tokens: { outputTokens: 7, totalTokens: 7 }, cost: { amount: 0n, currency: 'EUR' } },
      },
      toolUses: () => ({ allowed: 1, denied: 2, run: 3, failedCommands: 5, open: 4 }),
      warnings: { failedServers: () => 1, openWorkflowRuns: () => 2 },
    },
    counts: () => ({ counts: { total: 2 }, failures: { service: 1 } }),
  })
  const call = tracker.beginCall(endpoints.chat)
  call.reach('sent')
  await report.write({ exit: 5 })
  const text = readText(cwd, 'r.json')
  expect(text).toMatch(/^\{[^\n]*\\u202e[^\n]*\}\n$/)
  expect(JSON.parse(text)).toEqual({
    ...unknownReport,
    command: 'events run',
    exit: 5,
    kind: 'payment',
    toolUses: { allowed: 1, denied: 2, run: 3, failedCommands: 5, open: 4 },
    warnings: { failedServers: 1, openWorkflowRuns: 2 },
    sent: 'unknown',
    id: `${'i'.repeat(199)}…`,
    model: 'model ^[[31m \\u202e [redacted]',
    stopReason: 'end_turn',
    usage: { ...unknownUsage, inputTokens: 0 },
    seconds: 3.25,
    attempts: 3,
    requestId: 'req_1',
    session: 's1',
    files: ['a.png', 'b.txt \u202e'],
    cost: { amount: '12345678901234567890', currency: 'USD' },
    sessionUsage: { ...unknownUsage, outputTokens: 7, totalTokens: 7 },
    sessionCost: { amount: '0', currency: 'EUR' },
    counts: { total: 2 },
    failures: { service: 1 },
  })
})

const resume = ['events', 'follow']
const refused = new CliError('refused', 'x')

test.each<[string, Parameters<RunReport['write']>[0], object]>([
  [
    'a failure',
    { exit: 4, failure: new CliError('refused', 'x', { requestId: 'req_failed', resumeArguments: resume }) },
    { kind: 'refused', retry: 'never', requestId: 'req_failed', sent: 'no', resume },
  ],
  [
    'a signal',
    interruption,
    {
      ...{ kind: 'signal', requestId: 'req_1', resume: ['events', 'run'] },
      ...{ message: 'interrupted: x', files: ['a.part'] },
    },
  ],
  ['a failure without a request', { exit: 4, failure: refused }, { requestId: 'req_1', resume: null }],
  ['a signal without a failure', { exit: 130 }, { kind: null }],
])('the report of %s has its kind, request id and resume command', async (_, end, expected) => {
  const { cwd, reportData, report } = prepare()
  reportData.requestId = 'req_1'
  await report.write(end)
  expect(read(cwd)).toMatchObject({ exit: end.exit, ...expected })
})
