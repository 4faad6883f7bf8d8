import { expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'

const half = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\ufffd/

/** Returns the terminal columns of a text of the characters in this file. */
const columnsOf = (text: string) =>
  [...text.replaceAll('\u200d', '')].reduce((sum, char) => sum + (/[日本語🦊]/u.test(char) ? 2 : 1), 0)

const event = (id: string, type: string, content: string) => ({ id, type, content, processed_at: null })

const list = async (columns: number) => {
  const events = [
    event('sevt_日本語', 'agent.message', '🦊'.repeat(200)),
    event('🦊🦊', '日本語'.repeat(30), `x${'🦊'.repeat(200)}`),
    event('sevt_1', `x${'🦊'.repeat(400)}`, `${'語'.repeat(200)}`),
  ]
  return run(['events', 'list', '--session', 'sesn_1'], {
    exchange: answering(JSON.stringify({ data: events })),
    tty: ['stdout'],
    columns,
  })
}

test.each([119, 120, 121])(
  'parley aligns a table of %i columns with emoji and CJK and cuts no character',
  async (columns) => {
    const { out, code } = await list(columns)
    const rows = out.split('\n').slice(0, -1)
    expect(code).toBe(0)
    expect(rows).toHaveLength(4)
    expect(out).not.toMatch(half)
    for (const row of rows) expect(columnsOf(row)).toBeLessThanOrEqual(columns)
    const texts = rows.slice(1).map((row) => row.slice(row.lastIndexOf('  ') + 2))
    expect(texts.map((text) => text.slice(0, 4))).toEqual([
      '🦊🦊',
      expect.stringMatching(/^x🦊/u),
      '語語語語',
    ])
    const starts = rows.slice(1).map((row, index) => columnsOf(row) - columnsOf(texts[index] ?? ''))
    expect(new Set(starts).size).toBe(1)
  },
)

test.each([20, 41, 60, 79, 80, 81])(
  'events list fits two or three lines per event into %i columns and cuts no character',
  async (columns) => {
    const { out, code } = await list(columns)
    const rows = out.split('\n').slice(0, -1)
    expect({ code, count: rows.length }).toEqual({ code: 0, count: columns < 60 ? 12 : 8 })
    expect(out).not.toMatch(half)
    for (const row of rows) expect(columnsOf(row)).toBeLessThanOrEqual(columns)
  },
)

test('config list aligns its columns on a terminal if a value has wide characters', async () => {
  const env = { PARLEY_CHAT_MODEL: '日本語🦊', PARLEY_IMAGE_MODEL: 'plain' }
  const { out } = await run(['config', 'list', '--effective'], { tty: ['stdout'], env })
  const rows = out.split('\n').filter((row) => /PARLEY_(CHAT|IMAGE)_MODEL/.test(row))
  expect(rows).toHaveLength(2)
  const [first, second] = rows.map((row) => columnsOf(row.slice(0, row.indexOf('PARLEY_'))))
  expect(first).toBe(second)
})

test('parley cuts a message of emoji between characters', async () => {
  for (const before of ['', 'x']) {
    const text = before + '🦊'.repeat(5000)
    const body = JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: text } })
    const { err } = await run(['chat', 'hi'], { exchange: answering(body, { status: 400 }) })
    expect(err).toContain('🦊…')
    expect(err).not.toMatch(half)
  }
})

test('parley marks a cut text, also if the text starts with blanks', async () => {
  const stopped = message('Hi', { stop_reason: `a${' '.repeat(1000)}b` })
  const { err } = await run(['chat', 'hi'], { exchange: answering(stopped) })
  expect(err).toContain('the answer was stopped: a…')
})

test('the emulator cuts a repeated prompt between two characters', async () => {
  for (const before of ['', 'x']) {
    const prompt = before + '🦊'.repeat(100)
    for (const limit of ['1', '2', '14', '15', '16', '17', '1000']) {
      const argv = ['chat', '--profile', 'demo', '--max-output-tokens', limit, prompt]
      const { out } = await run(argv)
      expect(out).not.toMatch(half)
    }
  }
})
