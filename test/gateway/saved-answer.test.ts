import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import type { StdStream } from '../../src/basic-context.ts'
import { CliError } from '../../src/errors.ts'
import { realTimers } from '../../src/timers.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { breaking } from '../harness/responses.ts'
import { answering, createInterrupt, message, readText, run, temporaryFolder } from '../harness/run.ts'
import { createFailingStdout } from '../harness/stdout.ts'
import { imageAnswer, inline, png } from './image/image.ts'
import { piece, whole } from './parts.ts'

const bug = new TypeError('a bug')
const cut = new CliError('response', 'the answer broke off', { isCutOff: true })

const event = (text: string) => `data: ${piece(text)}\n\n`
const sse = 'text/event-stream'

/** Creates a stdout that throws an unexpected error at its first use. */
const stdoutWithBug: StdStream = {
  ...createFailingStdout(0),
  open() {
    throw bug
  },
}

/** Runs parley with a new temporary folder. Returns the content of the saved files. */
async function runSaving(argv: string[], exchange: Exchange, stdout?: StdStream) {
  const cwd = temporaryFolder({ s: 'true' })
  const env = { TMPDIR: cwd, PARLEY_IMAGE_MODEL: 'm' }
  // The schema check runs in a thread, so a fast test clock could exceed its time limit.
  const timers = realTimers
  const ended = await run(argv, { cwd, env, exchange, timers, ...(stdout ? { stdout } : {}) })
  const read = (name: string) => readText(cwd, name)
  const saved = readdirSync(cwd).filter((name) => name.startsWith('parley-'))
  for (const name of saved) expect(ended.err).toContain(`is saved as ${join(cwd, name)}`)
  return { ...ended, cwd, read, saved: saved.map(read) }
}

const plainBody = message('paid')
const labelledAs = (coding: string) => answering(plainBody, { headers: { 'content-encoding': coding } })

test.each([
  ['gzip', 'it cannot be decompressed', ['chat', 'x'], 'paid'],
  ['zst', 'its encoding, zst, is unknown', ['chat', 'x'], 'paid'],
  ['gzip', 'it cannot be decompressed', ['image', 'x'], plainBody],
])('with a wrong Content-Encoding %s, parley saves the answer and prints "%s"', async (...row) => {
  const [coding, why, argv, saved] = row
  const ended = await runSaving(argv, labelledAs(coding))
  expect([ended.code, ended.out, ended.saved]).toEqual([8, '', [saved]])
  expect(ended.err).toContain(`the answer cannot be read: ${why}; the received data is saved as`)
})

const failed = { error: { type: 'api_error', message: 'half' } }
const native = imageAnswer({ text: 'paid' }).replace(/\}$/, `,${JSON.stringify(failed).slice(1)}`)

test.each([
  ['chat', 'a native answer', native],
  ['image', 'a native answer', native],
  ['chat', 'a message', message('paid', failed)],
])('%s saves %s that has both a text and an error', async (command, _, body) => {
  const ended = await runSaving([command, 'x', '--retries', '0'], answering(body))
  expect([ended.code, ended.out, ended.saved]).toEqual([7, '', [body]])
  expect(ended.err).toMatch(
    /^parley: the service answered with an error in a successful response; the received data is saved as .*half/s,
  )
})

test('if an answer has a wrong Content-Encoding gzip, --raw prints the received bytes, and a batch result contains the text', async () => {
  const raw = await runSaving(['chat', 'x', '--raw'], labelledAs('gzip'))
  expect([raw.code, raw.out, raw.saved]).toEqual([8, plainBody, []])
  const batch = await run(['chat', '--batch', '-'], { stdin: '"x"\n', exchange: labelledAs('gzip') })
  expect([batch.code, JSON.parse(batch.out).error.body]).toEqual([8, 'paid'])
})

test.each([
  ['chat', '{"content":"paid'],
  ['image', '{"output":"paid'],
])('after an unexpected error, %s exits with 1 and saves the received body', async (command, text) => {
  const ended = await runSaving(
    [command, 'x'],
    breaking([text], () => bug),
  )
  expect([ended.code, ended.out, ended.saved]).toEqual([1, '', [text]])
  expect(ended.err).toMatch(
    /^parley: a bug in parley \S+: TypeError at .*; the received data is saved as .*\n {2}please report this line/,
  )
})

test('after an unexpected error, chat prints the received text of a stream and saves no copy', async () => {
  const exchange = breaking([event('paid')], () => bug, sse)
  const ended = await runSaving(['chat', 'x', '--stream'], exchange)
  expect([ended.code, ended.out, ended.saved]).toEqual([1, 'paid\n', []])
})

test('after an unexpected error, chat saves an answer that it could not print', async () => {
  const ended = await runSaving(['chat', 'x'], answering(message('paid')), stdoutWithBug)
  expect([ended.code, ended.saved]).toEqual([1, ['paid']])
})

test('after an unexpected error, image saves every image and names the files whose paths it has not printed', async () => {
  const exchange = answering(imageAnswer(inline(png(1)), inline(png(2))))
  const ended = await runSaving(['image', 'x'], exchange, stdoutWithBug)
  expect(ended.code).toBe(1)
  expect(readdirSync(ended.cwd).toSorted()).toEqual(['s', 'x-2.png', 'x.png'])
  expect(ended.err).toContain('2 of 2 images were not saved, or their paths were not printed')
})

test('parley saves the received text and names its file after an uncaught error', async () => {
  const cwd = temporaryFolder()
  let crash = async (_: unknown) => 0
  const exchange = breaking(event('paid'), () => void crash(bug), sse)
  const reportBugs = (report: typeof crash) => {
    crash = report
    return () => {}
  }
  const argv = ['chat', 'x', '--stream', '-o', 'a', '--errors', 'json']
  const { code, err } = await run(argv, { cwd, exchange, reportBugs })
  expect(JSON.parse(err).error).toMatchObject({ kind: 'unexpected', exit: code, kept: 'a.part' })
  expect(readText(cwd, 'a.part')).toBe('paid')
})

test('if stdout fails, chat reads a stream to its end and saves all of it', async () => {
  const pieces = [event('one '), event('two '), `data: ${piece('three', whole)}\n\n`]
  const exchange = answering(pieces, { headers: { 'content-type': sse } })
  for (const accepted of [0, 1]) {
    const stdout = createFailingStdout(accepted, 'ENOSPC')
    const ended = await runSaving(['chat', 'x', '--stream'], exchange, stdout)
    expect([ended.code, ended.saved]).toEqual([11, ['one two three']])
  }
})

test('if stdout fails, chat --raw saves the body from the first byte that was not printed', async () => {
  const body = message('paid')
  const exchange = answering([body.slice(0, 20), body.slice(20)])
  const none = await runSaving(['chat', 'x', '--raw'], exchange, createFailingStdout(0, 'ENOSPC'))
  expect([none.code, none.saved]).toEqual([11, [body]])
  const some = await runSaving(['chat', 'x', '--raw'], exchange, createFailingStdout(1, 'ENOSPC'))
  expect([some.code, some.saved]).toEqual([11, [body.slice(20)]])
  expect(some.err).toContain('; the received data from byte 20 on is saved as ')
})

test('chat prints the answer on stderr, escaped or as JSON, if neither stdout nor the temporary folder accepts it', async () => {
  const text = 'paid\n::notice::\u001b[2J'
  const ask = async (...flags: string[]) => {
    const env = { TMPDIR: join(temporaryFolder(), 'missing') }
    const world = { env, exchange: answering(message(text)), stdout: createFailingStdout(0, 'ENOSPC') }
    const { code, err } = await run(['chat', 'x', ...flags], world)
    expect(code).toBe(11)
    return err
  }
  expect(await ask()).toContain('\n  the answer:\n  | paid\n  | ::notice::^[[2J\n')
  expect(JSON.parse(await ask('--errors', 'json')).error).toMatchObject({ kind: 'file', body: text })
})

test('chat -o saves a cut body as FILE.part, named in the report and the failure', async () => {
  const exchange = breaking(['{"content":"paid'], () => cut)
  const ended = await runSaving(['chat', 'x', '-o', 'a', '--report', 'r', '--errors', 'json'], exchange)
  expect([ended.code, ended.saved, ended.read('a.part')]).toEqual([8, [], '{"content":"paid'])
  expect(JSON.parse(ended.err).error).toMatchObject({ kept: 'a.part' })
  expect(JSON.parse(ended.read('r'))).toMatchObject({ exit: 8, files: ['a.part'] })
})

const start = 'event: message_start\ndata: {"type":"message_start","message":{"content":[]}}\n\n: ping\n\n'
test.each(['chat x', 'chat x --stream'])('%s -o leaves no FILE.part of an empty cut stream', async (line) => {
  const exchange = breaking([start], () => cut, sse)
  const { code, cwd } = await runSaving([...line.split(' '), '-o', 'a'], exchange)
  expect([code, readdirSync(cwd)]).toEqual([8, ['s']])
})

test.each(['chat x', 'image x'])(
  '%s prints the service error in a body whose connection broke off, and saves nothing',
  async (line) => {
    const exchange = breaking('{"error":{"message":"busy"}}', () => cut)
    const { code, err, saved } = await runSaving(line.split(' '), exchange)
    expect([code, err, saved]).toEqual([8, 'parley: the answer broke off\n  the service says: busy\n', []])
  },
)

const call = 'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}\n\n'

test.each([
  ['a function call', call],
  ['a part of an event', 'data: {"candidates":[{"content":{"parts":[{"text":"paid'],
])('chat -o saves a cut stream with %s as FILE.part', async (_, events) => {
  const exchange = breaking([start, events], () => cut, sse)
  const { code, read } = await runSaving(['chat', 'x', '-o', 'a'], exchange)
  expect([code, read('a.part')]).toEqual([8, start + events])
})

test('the result of a batch line contains the text and the function call of a cut stream', async () => {
  const exchange = breaking([event('paid'), call], () => cut, sse)
  const { out } = await run(['chat', '--batch', '-', '--retries', '0'], { stdin: '"x"\n', exchange })
  expect(JSON.parse(out).error.body).toMatch(/^paid\n.*functionCall/)
})

test.each<[string, Exchange, string]>([
  ['a cut body', breaking(['{"output":"paid'], () => cut), '{"output":"paid'],
  ['an answer without an image', answering(message('paid')), message('paid')],
])('image -o saves %s as FILE.part, named in the report and the failure', async (_, exchange, body) => {
  const ended = await runSaving(['image', 'x', '-o', 'a.png', '--report', 'r', '--errors', 'json'], exchange)
  expect([ended.code, ended.saved, ended.read('a.png.part')]).toEqual([8, [], body])
  expect(JSON.parse(ended.err.split('\n').at(-2) ?? '').error).toMatchObject({ kept: 'a.png.part' })
  expect(JSON.parse(ended.read('r'))).toMatchObject({ exit: 8, files: ['a.png.part'] })
})

const body = '{"content":"paid'

/** Interrupts a command after it received this body. Returns the name and content of the saved file. */
async function runUntilSignal(command: string[], received: string, type: string, act = (_: string) => {}) {
  const cwd = temporaryFolder()
  mkdirSync(join(cwd, 'sub'))
  mkdirSync(join(cwd, 'tmp'))
  const { onSignal, interrupt } = createInterrupt()
  let message = ''
  const stop = () => {
    act(cwd)
    message = interrupt()
    return cut
  }
  const exchange = breaking(received, stop, type)
  const argv = [...command, 'x', '-o', join('sub', 'a'), '--errors', 'json']
  const env = { TMPDIR: join(cwd, 'tmp'), PARLEY_IMAGE_MODEL: 'm' }
  await run(argv, { cwd, env, exchange, onSignal })
  const { kept } = JSON.parse(message).error
  const name = kept?.replace(/parley-[\w-]{36}/, 'ID').replace(cwd, '')
  return { name, saved: kept && readFileSync(resolve(cwd, kept), 'utf8') }
}

test.each(['chat', 'chat --stream'])(
  'after a signal, %s -o saves no file without a received text',
  async (line) => {
    expect(await runUntilSignal(line.split(' '), start, sse)).toEqual({})
  },
)

test.each(['chat', 'image'])('after a signal, %s -o saves the body in FILE.part', async (command) => {
  const ended = await runUntilSignal([command], body, 'application/json')
  expect(ended).toEqual({ name: join('sub', 'a.part'), saved: body })
})

test('after a signal, chat -o saves a body in the temporary folder if the folder of FILE is gone', async () => {
  const removeFolder = (cwd: string) => rmSync(join(cwd, 'sub'), { recursive: true })
  const ended = await runUntilSignal(['chat'], body, 'application/json', removeFolder)
  expect(ended).toEqual({ name: join('/', 'tmp', 'ID.json'), saved: body })
})
