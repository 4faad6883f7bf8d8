import { expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'

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
  'on a terminal with %i columns, events list aligns emoji and CJK and cuts no character in half',
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

test.each([79, 80, 81])(
  'on a terminal with %i columns, events list prints two lines per event and cuts no character in half',
  async (columns) => {
    const { out, code } = await list(columns)
    const rows = out.split('\n').slice(0, -1)
    expect({ code, count: rows.length }).toEqual({ code: 0, count: 8 })
    expect(out).not.toMatch(half)
    for (const row of rows) expect(columnsOf(row)).toBeLessThanOrEqual(columns)
  },
)
