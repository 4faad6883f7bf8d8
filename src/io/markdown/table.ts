import type { Tokens } from 'marked'
import { type Line, looks, measure, type Span, textOf, wrap } from '../spans.ts'
import { type LinkStyle, readLines } from './inline.ts'

/** A table is not wider, even in a pipe: short cells beside a long one must not become a lot of blanks. */
const widest = 500
/** A column whose cells are wrapped is not narrower. */
const narrowest = 8

/** `undefined` if the table does not fit, or has a row with more cells than columns, which would be lost. */
export function layOutTable(table: Tokens.Table, columns: number, links: LinkStyle): Line[] | undefined {
  const all = [table.header, ...table.rows]
  if (wordsOf(table.raw) !== wordsOf(all.flatMap((row) => row.map(({ text }) => text)).join(' ')))
    return undefined
  const rows = all.map((row) =>
    row.map(({ tokens, header }) => readLines(tokens.map(breakAtTag), header ? looks.bold : '', links)),
  )
  const widths = findWidths(rows, Math.min(columns, widest), columns === Infinity)
  if (!widths) return undefined
  const rule: Line = [{ text: widths.map((width) => '─'.repeat(width)).join('─┼─'), look: looks.frame }]
  return rows.flatMap((row, index) => {
    const cells = row.map((lines, column) => lines.flatMap((line) => wrap(line, widths[column] as number)))
    const height = Math.max(...cells.map(({ length }) => length))
    const laidOut = Array.from({ length: height }, (_, at) =>
      joinCells(
        cells.map((lines) => lines[at] ?? []),
        widths,
        table.align,
      ),
    )
    return index === 0 ? [...laidOut, rule] : laidOut
  })
}

const wordsOf = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '')

/** In a cell, nothing else begins a new line. */
const breakAtTag = (token: Tokens.Generic): Tokens.Generic =>
  token.type === 'html' && /^<br ?\/?>$/i.test(token.raw) ? { type: 'br', raw: '\n' } : token

/** How wide each column is: as wide as its widest line if there is room, else as wide as its longest word at least. */
function findWidths(rows: readonly Line[][][], columns: number, isFixed: boolean): number[] | undefined {
  const header = rows[0] as Line[][]
  const widestOf = (column: number, cut: (line: Line) => Line[]) =>
    Math.max(1, ...rows.flatMap((row) => row[column]?.flatMap(cut).map(measure) ?? []))
  const whole = header.map((_, column) => widestOf(column, (line) => [line]))
  const room = columns - 3 * (header.length - 1)
  const sum = (widths: number[]) => widths.reduce((total, width) => total + width, 0)
  if (sum(whole) <= room) return whole
  if (isFixed) return undefined
  const least = header.map((_, column) =>
    Math.max(
      Math.min(whole[column] as number, narrowest),
      widestOf(column, (line) => wrap(line, 1)),
    ),
  )
  if (sum(least) > room) return undefined
  let most = Math.max(...whole)
  const limited = () => whole.map((width, column) => Math.max(least[column] as number, Math.min(width, most)))
  while (sum(limited()) > room) most--
  return limited()
}

/** One line of a row, which ends with its last cell that has text. */
function joinCells(cells: readonly Line[], widths: readonly number[], aligns: Tokens.Table['align']): Line {
  const last = cells.findLastIndex((line) => textOf(line) !== '')
  return cells.slice(0, last + 1).flatMap((line, column): Span[] => {
    const free = Math.max(0, (widths[column] as number) - measure(line))
    const align = aligns[column]
    const before = align === 'right' ? free : align === 'center' ? free >> 1 : 0
    const blank = (count: number): Span => ({ text: ' '.repeat(count), look: '' })
    const frame: Span[] = column > 0 ? [{ text: ' │ ', look: looks.frame }] : []
    return [...frame, blank(before), ...line, ...(column < last ? [blank(free - before)] : [])]
  })
}
