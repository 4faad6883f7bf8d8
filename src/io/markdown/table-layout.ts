import { type CellLine, fold, widthOf, wordsOf } from './cell.ts'
import type { Page } from './page.ts'
import { looks, type Span } from './paint.ts'

export type Alignment = 'left' | 'right' | 'center'

export interface Layout {
  widths: number[]
  alignments: readonly Alignment[]
}

/** The widest column, even where nothing is wrapped: a short text must not become a lot of blanks. */
const widest = 100
const narrowest = 3
/** A word up to this width is not cut if there is room. */
const longestUncut = 24
/** If words have to be cut, columns narrower than this on average are not worth it. */
const leastShare = 10

/**
 * How wide each column is: as wide as its text, but the widest ones are made narrower until a row fits into the room.
 * `undefined` where they would be too narrow to be read.
 */
export function fitColumns(
  rows: readonly (readonly string[])[],
  page: Page,
  room: number,
): number[] | undefined {
  const wanted: number[] = []
  const needed: number[] = []
  for (const [at, row] of rows.entries()) {
    for (const [column, cell] of row.entries()) {
      const words = wordsOf(cell, page.measure, at === 0)
      const longest = words.reduce((most, word) => Math.max(most, word.width - Number(word.isSpaced)), 0)
      wanted[column] = Math.max(wanted[column] ?? narrowest, Math.min(widthOf(words), widest))
      needed[column] = Math.max(needed[column] ?? narrowest, Math.min(longest, longestUncut))
    }
  }
  const left = room - 3 * (wanted.length - 1)
  const isNarrow = wanted.length > 1 && left < wanted.length * leastShare
  return shrink(wanted, needed, left) ?? (isNarrow ? undefined : shrink(wanted, [], left))
}

/** The widest columns that fit, none narrower than it needs to be; `undefined` where none do. */
function shrink(wanted: number[], needed: number[], room: number): number[] | undefined {
  for (let most = widest; most >= narrowest; most--) {
    const widths = wanted.map((width, column) => Math.min(width, Math.max(most, needed[column] ?? 0)))
    if (widths.reduce((sum, width) => sum + width, 0) <= room) return widths
  }
  return undefined
}

export function printRow(
  page: Page,
  lead: readonly Span[],
  row: string[],
  layout: Layout,
  isHead = false,
): void {
  const cells = row.map((cell, column) =>
    fold(wordsOf(cell, page.measure, isHead), layout.widths[column] ?? narrowest, page.measure),
  )
  const height = Math.max(1, ...cells.map(({ length }) => length))
  for (let at = 0; at < height; at++) {
    const spans: Span[] = []
    // A line ends with its last cell that has text.
    const end = cells.findLastIndex((lines) => (lines[at]?.width ?? 0) > 0)
    for (let column = 0; column <= end; column++) {
      if (column > 0) spans.push({ text: ' │ ', look: looks.frame })
      spans.push(...align(cells[column]?.[at], layout, column, column === end))
    }
    page.printLine([...lead, ...spans])
  }
}

function align(
  line: CellLine = { spans: [], width: 0 },
  { widths, alignments }: Layout,
  column: number,
  isLast: boolean,
): Span[] {
  const free = Math.max(0, (widths[column] ?? 0) - line.width)
  const alignment = alignments[column]
  const before = alignment === 'right' ? free : alignment === 'center' ? free >> 1 : 0
  const blanks = (count: number): Span => ({ text: ' '.repeat(count), look: '' })
  return [blanks(before), ...line.spans, ...(isLast ? [] : [blanks(free - before)])]
}

export function printRule(page: Page, lead: readonly Span[], { widths }: Layout): void {
  const text = widths.map((width) => '─'.repeat(width)).join('─┼─')
  page.printLine([...lead, { text, look: looks.frame }])
}
