import { expect, test } from 'vitest'
import { answering, createInterrupt, run, temporaryFolder } from '../harness/run.ts'

const columns = 44
const terminal = { tty: ['stdout', 'stderr'] as ('stdout' | 'stderr')[], columns, env: { NO_COLOR: '1' } }

/** Joins the wrapped lines of messages. */
const joined = (err: string) => err.replace(/\n {2,4}(?=\S)/g, ' ')

test('V69: parley wraps a message between words on a terminal, indents the later lines, and wraps nothing in a pipe', async () => {
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

test('V69: parley does not wrap a command in a message, so that users can copy it', async () => {
  const env = { NO_COLOR: '1', PARLEY_ACCESS_TOKEN: '' }
  const { err } = await run(['chat', 'hi'], { ...terminal, env })
  expect(err).toMatch(/^ *.*'--profile demo'/m)
  expect(err).toMatch(/^ *.*'parley config init'/m)
  for (const line of err.trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
})

test('V69: a semicolon in a quoted word of a command does not end the command, which stays on one line', async () => {
  const headers = String.raw`--header 'Accept: a/b; q=1; it'\''s; x' --header $'X-A: it\'s; a\011 b; c'`
  const values = ["Accept: a/b; q=1; it's; x", "X-A: it's; a\t b; c"]
  const flags = ['-s', 'sesn_1', '--no-stdin', ...values.flatMap((value) => ['-H', value])]
  const { err } = await run(['events', 'run', 'use a tool', ...flags], terminal)
  expect(err).toContain(`    parley events confirm ${headers} -s sesn_1 --pending\n`)
})

test('V69: a sentence is wrapped even if it contains the word parley or a whole command', async () => {
  const cwd = temporaryFolder({ 'notes.txt': 'mine' })
  const { err } = await run(['chat', 'hi', '--report', 'notes.txt'], { ...terminal, cwd })
  expect(joined(err)).toContain('it is neither empty nor a report, so parley does not replace it')
  const hint = await run(['chat', '-s', 'x'], terminal)
  expect(hint.err).toContain('parley events list -s ID')
  for (const line of (err + hint.err).split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
})

test("V69: parley indents each line of the service's message, so that only parley's lines start at the left", async () => {
  const serviceMessage = `it is so ${'very '.repeat(30)}late`
  const exchange = answering(JSON.stringify({ error: { message: serviceMessage } }), { status: 400 })
  const { err } = await run(['chat', 'hi'], { ...terminal, exchange })
  expect(err.trimEnd().split('\n').slice(2)).toEqual(err.match(/(?<=\n) {4}\S.{0,39}(?=\n)/g))
  expect(joined(err)).toContain(` the service says: ${serviceMessage}\n`)
})

test('V69: parley wraps the message that it prints after a signal', async () => {
  const { onSignal, interrupt } = createInterrupt()
  const batch = ['chat', '--batch', '-', '--results', 'r.ndjson', '--resume']
  const text = await new Promise<string>((resolve) => {
    const exchange = () => {
      resolve(interrupt(143))
      return new Promise<never>(() => {})
    }
    void run(batch, { ...terminal, stdin: '"x"\n', exchange, onSignal })
  })
  expect(joined(text)).toMatch(/^parley: interrupted: .*; to resume: the same command with --resume\n$/)
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
})
