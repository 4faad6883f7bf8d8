import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { answering, message, run, temporaryFolder } from '../../harness/run.ts'
import { withoutColours } from './print.ts'

const source = '# Title\n\n- **bold** and `code`\n\n|a|b|\n|-|-|\n|1|2|'
const laidOut = 'Title\n\n• bold and code\n\na │ b\n──┼──\n1 │ 2\n'
const exchange = answering(message(source))
const onTerminal = { exchange, tty: ['stdout' as const], columns: 80 }

describe('Markdown answer', () => {
  test('a Markdown answer is laid out in colours on a terminal', async () => {
    const { code, out } = await run(['chat', 'hi'], onTerminal)
    expect(code).toBe(0)
    expect(out).toContain('\x1b[1;4;35mTitle\x1b[0m')
    expect(withoutColours(out)).toBe(laidOut)
  })

  test.each([
    ['--no-markdown', {}],
    ['', { PARLEY_MARKDOWN: 'false' }],
  ])('a Markdown answer is printed verbatim on a terminal with %j and %j', async (flag, env) => {
    const argv = ['chat', 'hi', ...(flag ? [flag] : [])]
    expect(await run(argv, { ...onTerminal, env })).toMatchObject({ code: 0, out: `${source}\n` })
  })

  test('--markdown lays out an answer in a pipe, in colours only with --color always', async () => {
    expect(await run(['chat', 'hi', '--markdown'], { exchange })).toMatchObject({ code: 0, out: laidOut })
    const { out } = await run(['chat', 'hi', '--markdown', '--color', 'always'], { exchange })
    expect(out).toContain('\x1b[1m')
    expect(withoutColours(out)).toBe(laidOut)
  })

  test.each([
    ['Title\n===', '\x1b[1;4;35mTitle\x1b[0m\n'],
    ['Part\n---\ntext', '\x1b[1;35mPart\x1b[0m\ntext\n'],
    ['- Item\n  ---\n- b', '\x1b[36m• \x1b[0m\x1b[1;35mItem\x1b[0m\n\x1b[36m• \x1b[0mb\n'],
    ['> [!NOTE]\n> text', '\x1b[2m│ \x1b[0m\x1b[1mNote\x1b[0m\n\x1b[2m│ \x1b[0mtext\n'],
    ['a\nb\n===', `a\nb\n\x1b[2m${'─'.repeat(80)}\x1b[0m\n`],
  ])('chat on a terminal lays out underlined headings and alerts: %j', async (text, shown) => {
    const { out } = await run(['chat', 'hi'], { ...onTerminal, exchange: answering(message(text)) })
    expect(out).toBe(shown)
  })

  test.each([
    ['Makefile:\n\n\tall:\n\t\tcc *.c -o a*b\n', 'Makefile:\n\n  all:\n  \tcc *.c -o a*b\n'],
    ['> a\n>\n>\t\tcode b*c*', '│ a\n│\n│     code b*c*\n'],
    ['- a\n\t- b\n\t\t- c\n- d', '• a\n  ◦ b\n    ▪ c\n• d\n'],
    ['1. one\n\t- sub\n\n\tpara', '1. one\n   ◦ sub\n\n   para\n'],
    ['-\ta\n\n\tb\n\n\t\tcode *c*', '• a\n\n  b\n\n    code *c*\n'],
    ['- a\n\n\t\tcode', '• a\n\n      code\n'],
    ['- a\n\n\t```\n\tb\n\t\tc\n\t```', '• a\n\n    b\n    \tc\n'],
    ['- a\n\n\t|x|y|\n\t|-|-|\n\t|1|2|', '• a\n\n  x │ y\n  ──┼──\n  1 │ 2\n'],
  ])(
    'chat on a terminal ends a tab of an indentation at a multiple of four columns: %j',
    async (text, shown) => {
      const { out } = await run(['chat', 'hi'], { ...onTerminal, exchange: answering(message(text)) })
      expect(withoutColours(out)).toBe(shown)
      const { out: streamed } = await run(['chat', 'hi', '--stream'], {
        ...onTerminal,
        exchange: answering(message(text)),
      })
      expect(withoutColours(streamed)).toBe(shown)
    },
  )

  test.each([
    ['1. one\n1. two\n1. three', '1. one\n2. two\n3. three\n'],
    ['9) a\n9) b\n\n   para\n9) c', '9) a\n10) b\n\n    para\n11) c\n'],
    ['1. a\n   1. b\n   1. c\n1. d\n   1. e', '1. a\n   1. b\n   2. c\n2. d\n   1. e\n'],
    ['1. a\n\ntext\n\n1. b\n1) c', '1. a\n\ntext\n\n1. b\n1) c\n'],
    ['> 3. a\n> 3. b', '│ 3. a\n│ 4. b\n'],
  ])('chat on a terminal numbers the items of a list from its first number: %j', async (text, shown) => {
    const { out } = await run(['chat', 'hi'], { ...onTerminal, exchange: answering(message(text)) })
    expect(withoutColours(out)).toBe(shown)
  })

  test.each([
    [`${'a'.repeat(130)} end.`, 50 + 5],
    [`- ${'a'.repeat(130)} ${'b'.repeat(27)}`, 52 + 28],
    [`- ${'a'.repeat(130)} ${'b'.repeat(28)}`, 52],
    [`${'a'.repeat(160)} b`, 80],
  ])(
    'on a terminal, words follow on the last row of a word that is wider than the terminal: %j',
    async (text, lastRow) => {
      const { out } = await run(['chat', 'hi'], { ...onTerminal, exchange: answering(message(text)) })
      const [line = ''] = withoutColours(out).split('\n')
      expect(line.length % 80 || 80).toBe(lastRow % 80 || 80)
    },
  )

  test('--markdown escapes control characters in a pipe', async () => {
    const world = { exchange: answering(message('a\x1b[2J\u202eb')) }
    expect(await run(['chat', 'hi', '--markdown'], world)).toMatchObject({ out: 'a^[[2J\\u202eb\n' })
  })

  test('--stream prints each word of a Markdown answer before the next one arrives', async () => {
    const events = ['| a | b |\n', '|-|-|\n', '| 1 | 2 |\n\n', 'one **two', ' three**', ' four', ' five']
      .map((text) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }))
      .map((delta) => `event: content_block_delta\ndata: ${JSON.stringify(delta)}\n\n`)
    const stop = 'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    const headers = { 'content-type': 'text/event-stream' }
    const streamed = answering([...events, stop], { headers })
    const written: string[] = []
    const stdout = new Writable({
      write(chunk: Buffer, _, done) {
        written.push(withoutColours(chunk.toString()))
        done()
      },
    })
    const { code } = await run(['chat', 'hi', '--stream'], {
      exchange: streamed,
      stdout: { isTerminal: true, columns: 80, open: () => stdout, writeSync: () => 0 },
    })
    expect(code).toBe(0)
    expect(written).toEqual(['a │ b\n──┼──\n1 │ 2\n', '\none', ' two three', ' four', ' five\n'])
  })

  test('-o and --thread save a Markdown answer verbatim', async () => {
    const cwd = temporaryFolder()
    await run(['chat', 'hi', '-o', 'answer.md'], { ...onTerminal, cwd })
    expect(readFileSync(join(cwd, 'answer.md'), 'utf8')).toBe(`${source}\n`)
    const { out } = await run(['chat', 'hi', '--thread', 'talk.json'], { ...onTerminal, cwd })
    expect(withoutColours(out)).toBe(laidOut)
    expect(readFileSync(join(cwd, 'talk.json'), 'utf8')).toContain(JSON.stringify(source))
  })

  test.each([['--raw'], ['-o', 'file']])('chat exits with 2 for --markdown with %s', async (...flags) => {
    const { code, err, requests } = await run(['chat', 'hi', '--markdown', ...flags], { exchange })
    expect({ code, requests }).toEqual({ code: 2, requests: [] })
    expect(err).toContain('--markdown')
  })

  test('a stream that is cut off prints its unfinished Markdown block with layout', async () => {
    const delta = (text: string) =>
      `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })}\n\n`
    const body = ['**one', ' two\n\n|a|b|\n', '|-|-|\n|1|', '2'].map(delta)
    const broken = answering(body, { headers: { 'content-type': 'text/event-stream' } })
    const { code, out } = await run(['chat', 'hi', '--stream'], { ...onTerminal, exchange: broken })
    expect(code).toBe(8)
    expect(withoutColours(out)).toBe('**one two\n\na │ b\n──┼──\n1 │ 2\n')
  })
})
