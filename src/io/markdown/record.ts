import { fold, type Word, wordsOf } from './cell.ts'
import type { Page } from './page.ts'
import { looks, type Span } from './paint.ts'

/** How much of a column's name is repeated in each row, in columns, and how much is read for it, in characters. */
const longestName = 24
const mostRead = 200

interface RecordOptions {
  lead: readonly Span[]
  head: readonly string[]
  /** Whether it is the table's first, which shows the names of all columns as they are. */
  isFirst: boolean
}

/** Prints a row of a table that has no room for its columns: each cell on a line of its own, after its column's name. */
export function printRecord(
  page: Page,
  row: readonly string[],
  { lead, head, isFirst }: RecordOptions,
): void {
  const room = Math.max(page.columns - page.measure(lead) - 2, 16)
  for (const [column, name] of head.entries()) {
    const cell = row[column] ?? ''
    if (cell === '' && !isFirst) continue
    const label = isFirst
      ? wordsOf(name, page.measure, true)
      : shorten(name, Math.min(longestName, room - 1), page)
    const [first, ...rest] = wordsOf(cell, page.measure, false)
    const words = [...withColon(label), ...(first ? [withBlank(first)] : []), ...rest]
    for (const [at, line] of fold(words, room, page.measure).entries()) {
      page.printLine([...lead, { text: at === 0 ? '' : '  ', look: '' }, ...line.spans])
    }
  }
  page.skip(lead)
}

function shorten(name: string, width: number, { measure }: Page): Word[] {
  const [line] = fold(wordsOf(name.slice(0, mostRead), measure, true), width, measure)
  return line ? [{ ...line, isFirst: true, isSpaced: false }] : []
}

function withColon(label: Word[]): Word[] {
  const last = label.at(-1) ?? { spans: [], width: 0, isFirst: true, isSpaced: false }
  const spans = [...last.spans, { text: ':', look: looks.frame }]
  return [...label.slice(0, -1), { ...last, spans, width: last.width + 1 }]
}

const withBlank = (word: Word): Word => ({
  spans: [{ text: ' ', look: '' }, ...word.spans],
  width: word.width + 1,
  isFirst: false,
  isSpaced: true,
})
