import { getLineText, measureLineWidth, type Span, type StyledLine, spanStyles, wrapLine } from '../spans.ts'
import { layOutInlineTokens, trimLineEnd } from './inline.ts'
import { createBlankSpan } from './row-buffer.ts'
import { maxBlockLength, readInlineTokens } from './source.ts'

/**
 * Maximum length of a table, in characters. A longer table is laid out in parts, so that memory stays
 * limited.
 */
export const maxTableLength = 64 * 1024

/**
 * Maximum width of a table, also in a pipe. Without a limit, a short cell next to a very long cell would
 * become a long row of blanks.
 */
const maxTableColumns = 500
const minColumnWidth = 8
const maxRepeatedColumns = 80

export const isDelimiterRow = (line: string): boolean =>
  line.includes('|') && splitCells(line).every((cell) => /^:?-+:?$/.test(cell))

/**
 * Rows may have fewer or more cells than the header. If the columns do not fit, each cell gets its own line.
 * Set `isHeaderPrinted` if the header was already printed as text.
 */
export function layOutTable(source: string, columns: number, isHeaderPrinted = false): StyledLine[] {
  const [header = '', delimiter = '', ...lines] = source.trimEnd().split('\n')
  const delimiters = splitCells(delimiter)
  const readRow = (line: string, sgr: string) =>
    splitRow(line, delimiters.length).map((cell) =>
      cell.length > maxBlockLength
        ? [[{ text: cell, sgr }]]
        : layOutInlineTokens(readInlineTokens(cell), sgr),
    )
  const rows = [readRow(header, spanStyles.bold), ...lines.map((line) => readRow(line, ''))]
  const widths = findWidths(rows, Math.min(columns, maxTableColumns))
  if (!widths) return layOutCells(rows, columns)
  const rule: StyledLine = [
    { text: widths.map((width) => '─'.repeat(width)).join('─┼─'), sgr: spanStyles.frame },
  ]
  return rows.flatMap((row, index) => {
    const cells = row.map((each, column) => each.flatMap((line) => wrapLine(line, widths[column] as number)))
    const height = Math.max(...cells.map(({ length }) => length))
    const laidOut = Array.from({ length: height }, (_, at) =>
      joinCells(
        cells.map((each) => each[at] ?? []),
        widths,
        delimiters,
      ),
    )
    return index > 0 ? laidOut : isHeaderPrinted ? [rule] : [...laidOut, rule]
  })
}

/**
 * In GitHub's Markdown, an unescaped pipe ends a cell even in code, but models often forget to escape it. So
 * if splitting at the pipes outside of code gives `count` cells, the pipes in code are text.
 */
function splitRow(line: string, count: number): string[] {
  const cells = splitCells(line)
  const whole = cells.length > count ? splitCells(line, /((?:\\.|`[^`]*`|[^|])*)(?:\||$)/g) : cells
  return whole.length === count ? whole : cells
}

function splitCells(line: string, cell = /((?:\\.|[^|])*)(?:\||$)/g): string[] {
  const cells = [...line.trim().replace(/^\|/, '').matchAll(cell)]
  // The last match is the empty text after the last cell, so it is not a cell.
  const last = Math.max(1, cells.length - 1)
  return cells.slice(0, last).map(([, text = '']) => text.trim().replaceAll('\\|', '|'))
}

/**
 * Makes each column as wide as its widest line. If the table is then too wide, a column may shrink to its
 * longest word. Returns `undefined` if even the words do not fit.
 */
function findWidths(rows: readonly StyledLine[][][], columns: number): number[] | undefined {
  const whole = measureCells(rows, (line) => [line])
  const room = columns - 3 * (whole.length - 1)
  const sum = (widths: number[]) => widths.reduce((total, width) => total + width, 0)
  if (sum(whole) <= room) return whole
  const longestWords = measureCells(rows, (line) => wrapLine(line, 1))
  const least = whole.map((width, column) =>
    Math.max(Math.min(width, minColumnWidth), longestWords[column] as number),
  )
  if (sum(least) > room) return undefined
  let most = Math.max(...whole)
  const limited = () => whole.map((width, column) => Math.max(least[column] as number, Math.min(width, most)))
  while (sum(limited()) > room) most--
  return limited()
}

function measureCells(
  rows: readonly StyledLine[][][],
  cut: (line: StyledLine) => readonly StyledLine[],
): number[] {
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, lines] of row.entries())
      widths[column] = Math.max(1, widths[column] ?? 0, ...lines.flatMap(cut).map(measureLineWidth))
  }
  return widths
}

/** Lays out a table that is too wide: one line per cell, after the header of its column. */
function layOutCells([header = [], ...rows]: readonly StyledLine[][][], columns: number): StyledLine[] {
  const names = header.map((lines) =>
    lines.flatMap((line, index) => (index > 0 ? [createBlankSpan(1), ...line] : line)),
  )
  if (rows.length === 0) return names.flatMap((name) => wrapLine(name, columns))
  return rows.flatMap((row, index) => {
    // The first row names every column, even a column without a cell in this row.
    const cells = index === 0 ? [...row, ...names.slice(row.length).map(() => [])] : row
    const lines = cells.flatMap((cell, column) => {
      const { [column]: name = [] } = names
      // A very long name appears only in the first row, because repeating it would make the output too long.
      const isNamed = name.length > 0 && (index === 0 || measureLineWidth(name) <= maxRepeatedColumns)
      const start: StyledLine = isNamed ? [...name, { text: ': ', sgr: spanStyles.bold }] : []
      const [first = [], ...others] = cell
      return [trimLineEnd([...start, ...first]), ...others].flatMap((line) => wrapLine(line, columns))
    })
    return index === 0 ? lines : [[], ...lines]
  })
}

function joinCells(
  cells: readonly StyledLine[],
  widths: readonly number[],
  delimiters: readonly string[],
): StyledLine {
  const last = cells.findLastIndex((line) => getLineText(line) !== '')
  return cells.slice(0, last + 1).flatMap((line, column): Span[] => {
    const free = Math.max(0, (widths[column] as number) - measureLineWidth(line))
    const { [column]: delimiter = '' } = delimiters
    const before = !delimiter.endsWith(':') ? 0 : delimiter.startsWith(':') ? free >> 1 : free
    const frame: Span[] = column > 0 ? [{ text: ' │ ', sgr: spanStyles.frame }] : []
    return [
      ...frame,
      createBlankSpan(before),
      ...line,
      ...(column < last ? [createBlankSpan(free - before)] : []),
    ]
  })
}
