import { expect, test } from 'vitest'
import { createLineWrapper } from '../../src/io/wrapping.ts'
import { answering, message, run } from '../harness/run.ts'

const columns = 44
const terminal = { tty: ['stdout', 'stderr'] as ('stdout' | 'stderr')[], columns, env: { NO_COLOR: '1' } }

/** Joins the wrapped lines of messages. */
const joined = (err: string) => err.replace(/\n {2,4}(?=\S)/g, ' ')

test('V69: parley wraps a message on a terminal between words and indents the continuation lines', async () => {
  const argv = ['chat', 'hi', '--timeout', 'soon', '--temperature', 'warm']
  const { err } = await run(argv, terminal)
  const plain = await run(argv)
  expect(err.trimEnd().split('\n').length).toBeGreaterThan(1)
  for (const line of err.trimEnd().split('\n').slice(1)) expect(line).toMatch(/^ {2}\S/)
  expect(joined(err)).toBe(plain.err)
  const long = await run(['--nonsense-that-is-a-word-which-is-longer-than-the-screen', 'x'], terminal)
  for (const line of long.err.trimEnd().split('\n'))
    if (line.length > columns) expect(line).not.toContain(' is ')
})

test('parley prints a message in a pipe on one line, with any COLUMNS', async () => {
  const { err } = await run(['chat', 'hi', '--temperature', 'warm', '--color', 'never'], { columns })
  expect(err).toMatch(/^parley: [^\n]*\n$/)
})

test('V69: parley keeps a command that users copy on one line', async () => {
  const env = { NO_COLOR: '1', PARLEY_ACCESS_TOKEN: '' }
  const { err } = await run(['chat', 'hi'], { ...terminal, env })
  expect(err).toMatch(/^ *.*'--profile demo'/m)
  expect(err).toMatch(/^ *.*'parley config init'/m)
  for (const line of err.trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
})

test("V69: parley indents each line of the service's message, so that only parley's lines start at the left", async () => {
  const serviceMessage = `it is so ${'very '.repeat(30)}late`
  const exchange = answering(JSON.stringify({ error: { message: serviceMessage } }), { status: 400 })
  const { err } = await run(['chat', 'hi'], { ...terminal, exchange })
  expect(err.trimEnd().split('\n').slice(2)).toEqual(err.match(/(?<=\n) {4}\S.{0,39}(?=\n)/g))
  expect(joined(err)).toContain(` the service says: ${serviceMessage}\n`)
})

test('parley prints a request id once, after its dimmed label', async () => {
  const exchange = answering('', { status: 400, headers: { 'request-id': 'req_1' } })
  const { err } = await run(['chat', 'hi', '--color', 'always'], { ...terminal, exchange })
  expect(err).toContain('\n  \x1b[2mrequest id:\x1b[22m req_1\n')
})

test('V69: parley wraps the message of a signal between words', async () => {
  let signal: (exit: number) => string = () => ''
  const batch = ['chat', '--batch', '-', '--results', 'r.ndjson', '--resume']
  const text = await new Promise<string>((resolve) => {
    void run(batch, {
      ...terminal,
      stdin: '"x"\n',
      exchange() {
        resolve(signal(143))
        return new Promise(() => {})
      },
      onSignal(act) {
        signal = act
      },
    })
  })
  expect(joined(text)).toMatch(/^parley: interrupted: .*; to resume: the same command with --resume\n$/)
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
})

test('parley wraps a note like a failure, and counts wide characters as two columns', async () => {
  const env = { NO_COLOR: '1', PARLEY_PROFILE: '漢字漢字' }
  const { err } = await run(['config', 'use', 'default'], { ...terminal, env })
  expect(joined(err)).toBe('parley: PARLEY_PROFILE (漢字漢字) overrides the current profile\n')
  const narrow = await run(['config', 'use', 'default'], { ...terminal, env, columns: 32 })
  expect(narrow.err).toBe('parley: PARLEY_PROFILE (漢字漢\n  字) overrides the current\n  profile\n')
})

test('parley wraps the footer between words', async () => {
  const answer = message('Hi', { usage: { input_tokens: 17, output_tokens: 23, cache_read_input_tokens: 5 } })
  const wide = await run(['chat', 'hi'], { ...terminal, columns: 200, exchange: answering(answer) })
  const { err } = await run(['chat', 'hi'], { ...terminal, columns: 32, exchange: answering(answer) })
  expect(err).toMatch(/^— \S/)
  expect(err.trimEnd().split('\n').length).toBeGreaterThan(1)
  for (const line of err.split('\n')) expect(line.length).toBeLessThanOrEqual(32)
  const undated = (text: string) => text.replace(/[\d.]+ s\n/, '')
  expect(undated(joined(err))).toBe(undated(wide.err))
})

test('parley keeps the line breaks of a message, such as before a resume command', async () => {
  const wrap = await createLineWrapper({
    isTerminal: true,
    columns,
    open: () => process.stderr,
    writeSync: () => 0,
  })
  const command = `  parley events run -s s1 --no-stdin --policy ${'p'.repeat(30)}.json`
  expect(wrap(`parley: interrupted: the session continues; to resume:\n${command}\n`)).toBe(
    `parley: interrupted: the session\n  continues; to resume:\n${command}\n`,
  )
})
