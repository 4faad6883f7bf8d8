import { fold, wordsOf } from './cell.ts'
import type { Page } from './page.ts'
import { looks, type Span } from './paint.ts'

/** The widest name, in columns: a wider one is cut, as every row repeats it. */
const longestName = 24

/** Prints a row of a table that has no room for its columns: each cell on a line of its own, after its column's name. */
export function printRecord(
  page: Page,
  lead: readonly Span[],
  head: readonly string[],
  row: readonly string[],
): void {
  const room = Math.max(page.columns - page.measure(lead) - 2, 16)
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
      page.printLine([...lead, { text: at === 0 ? '' : '  ', look: '' }, ...line.spans])
    }
  }
  page.skip(lead)
}
