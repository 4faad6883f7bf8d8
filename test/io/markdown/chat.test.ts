import { expect, test } from 'vitest'
import { messageStop, textDelta } from '../../faults/answers.ts'
import { answering, message, readText, rejected, run, temporaryFolder } from '../../harness/run.ts'
import { createStdout } from '../../harness/stdout.ts'
import { withoutColours } from './print.ts'

const source = '# Title\n\n- **bold** and `code`\n\n|a|b|\n|-|-|\n|1|2|'
const laidOut = 'Title\n\n• bold and code\n\na │ b\n──┼──\n1 │ 2\n'
const exchange = answering(message(source))
const eventStream = { headers: { 'content-type': 'text/event-stream' } }
const onTerminal = { exchange, tty: ['stdout' as const], columns: 80 }

test('chat lays out a Markdown answer with colours on a terminal', async () => {
  const { code, out } = await run(['chat', 'hi'], onTerminal)
  expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining('\x1b[1;4;35mTitle\x1b[0m') })
  expect(withoutColours(out)).toBe(laidOut)
})

test.each<[string, string[], Record<string, string>]>([
  ['--no-markdown', ['--no-markdown'], {}],
  ['PARLEY_MARKDOWN=false', [], { PARLEY_MARKDOWN: 'false' }],
])('chat prints a Markdown answer verbatim on a terminal with %s', async (_, flags, env) => {
  const ended = await run(['chat', 'hi', ...flags], { ...onTerminal, env })
  expect(ended).toMatchObject({ code: 0, out: `${source}\n` })
})

test('chat --markdown lays out an answer in a pipe, with colours only after --color always', async () => {
  expect(await run(['chat', 'hi', '--markdown'], { exchange })).toMatchObject({ code: 0, out: laidOut })
  const { out } = await run(['chat', 'hi', '--markdown', '--color', 'always'], { exchange })
  expect(out).toContain('\x1b[1m')
  expect(withoutColours(out)).toBe(laidOut)
})

test('chat --markdown escapes control characters in a pipe', async () => {
  const world = { exchange: answering(message('a\x1b[2J\u202eb')) }
  expect(await run(['chat', 'hi', '--markdown'], world)).toMatchObject({ out: 'a^[[2J\\u202eb\n' })
})

test('chat --stream prints each word of a Markdown answer before the next word arrives', async () => {
  const texts = ['| a | b |\n', '|-|-|\n', '| 1 | 2 |\n\n', 'one **two', ' three**', ' four', ' five']
  const streamed = answering([...texts.map(textDelta), messageStop], eventStream)
  const written: string[] = []
  const stdout = createStdout((chunk, done) => {
    written.push(withoutColours(chunk.toString()))
    done()
  }, true)
  const { code } = await run(['chat', 'hi', '--stream'], {
    exchange: streamed,
    stdout: { ...stdout, columns: 80 },
  })
  expect(code).toBe(0)
  expect(written).toEqual(['a │ b\n──┼──\n1 │ 2\n', '\none', ' two three', ' four', ' five\n'])
})

test('chat -o and chat --thread save a Markdown answer verbatim', async () => {
  const cwd = temporaryFolder()
  await run(['chat', 'hi', '-o', 'answer.md'], { ...onTerminal, cwd })
  expect(readText(cwd, 'answer.md')).toBe(`${source}\n`)
  const { out } = await run(['chat', 'hi', '--thread', 'talk.json'], { ...onTerminal, cwd })
  expect(withoutColours(out)).toBe(laidOut)
  expect(readText(cwd, 'talk.json')).toContain(JSON.stringify(source))
})

test.each([['--raw'], ['-o', 'file']])('chat exits with 2 for --markdown with %s', async (...flags) => {
  expect(await run(['chat', 'hi', '--markdown', ...flags], { exchange })).toMatchObject(
    rejected(2, '--markdown'),
  )
})

test('chat --stream lays out the unfinished Markdown block of a stream that is cut off', async () => {
  const body = ['**one', ' two\n\n|a|b|\n', '|-|-|\n|1|', '2'].map(textDelta)
  const broken = answering(body, eventStream)
  const { code, out } = await run(['chat', 'hi', '--stream'], { ...onTerminal, exchange: broken })
  expect(code).toBe(8)
  expect(withoutColours(out)).toBe('**one two\n\na │ b\n──┼──\n1 │ 2\n')
})
