import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatTableLine, type MeasuredRow, replaceTable } from './table.ts'

const readme = readFileSync(join(import.meta.dirname, '../../src/README.md'), 'utf8')

const row = (fields: Partial<MeasuredRow>): MeasuredRow => ({
  work: '`chat`',
  against: 'a script',
  most: '1.6 x; 1.4 x',
  shown: '1.50 x (3 / 2 ms)',
  brief: '1.50 x',
  isOver: false,
  ...fields,
})

test('npm run bench --write replaces the table in src/README.md, with values over budget in bold', () => {
  const columns = [
    { node: '20.20', rows: [row({})] },
    { node: '24.21', rows: [row({ brief: '1.70 x', isOver: true })] },
  ]
  const written = replaceTable(readme, { columns, about: '2027-01-02, with curl $& and jq 2' })
  expect(written).toContain(
    [
      '| work | against | at most on Node 20; 24, 26 | 20.20 | 24.21 |',
      '|---|---|---|---|---|',
      '| `chat` | a script | 1.6 x; 1.4 x | 1.50 x | **1.70 x** |',
      '',
      'Bold rows',
    ].join('\n'),
  )
  expect(written).toContain(' On 2027-01-02, with curl $& and jq 2, ')
  expect(replaceTable(written, { columns, about: '2027-01-02, with curl $& and jq 2' })).toBe(written)
})

test('npm run bench marks a row that is over its budget', () => {
  expect(formatTableLine(row({}))).toMatch(/ \| ok \|$/)
  expect(formatTableLine(row({ isOver: true }))).toMatch(/ \| \*\*over\*\* \|$/)
})
