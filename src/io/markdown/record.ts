import { fold, wordsOf } from './cell.ts'
import type { Page } from './page.ts'
import { looks, type Span } from './paint.ts'

/** What is before a cell, in columns; a longer one is cut, for every row repeats it. */
const longestName = 24

/** A row of a table that has no room for its columns: a line for each cell, with its column's name. */
export function printRecord(
  page: Page,
  lead: readonly Span[],
  head: readonly string[],
  row: readonly string[],
): void {
  const room = Math.max(page.columns - page.measure(lead.map(({ text }) => text).join('')) - 2, 16)
  for (const [column, cell] of row.entries()) {
    if (cell === '') continue
    const name = fold(wordsOf(head[column] ?? '', page.measure, true), longestName, page.measure)[0]
    const label = {
      spans: [...(name?.spans ?? []), { text: ':', look: looks.frame }],
      width: (name?.width ?? 0) + 1,
    }
    const [first, ...rest] = wordsOf(cell, page.measure, false)
    const spaced = first && {
      ...first,
      spans: [{ text: ' ', look: '' }, ...first.spans],
      width: first.width + 1,
    }
    const words = [
      { ...label, isFirst: true, isSpaced: false },
      ...(spaced ? [{ ...spaced, isFirst: false, isSpaced: true }] : []),
      ...rest,
    ]
    for (const [at, line] of fold(words, room, page.measure).entries()) {
      page.startLine([...lead, { text: at === 0 ? '' : '  ', look: '' }, ...line.spans])
      page.endLine()
    }
  }
  page.skip(lead)
}
