import { columnGap, createTableFormatter } from '../../io/columns.ts'
import { toOneLine } from '../../io/escape.ts'
import { formatLocalTime } from '../../io/local-time.ts'
import type { Style } from '../../io/style.ts'
import { clipToColumns, measureColumns, padToColumns } from '../../io/width.ts'
import { getTextStart } from '../../wire/text-start.ts'

/** Cells of a row. The kind is the type of an event or the status of a session. */
export type ListingRow = readonly [id: string, kind: string, time: string, text: string]

const timeWidth = '2026-01-31 14:03:22'.length

const maxKindColumns = 'agent.thread_context_compacted'.length

/** Minimum width of the text column. If there is less space, each text gets its own line. */
const minTextColumns = 35

const maxIdColumns = 1024

/**
 * Returns a function that formats rows page by page for a terminal of `width` columns, with local times. Long
 * texts are cut. Ids are not cut, because people copy them.
 */
export function createListingTableFormatter(titles: ListingRow, width: number, style: Style) {
  let layout: ((rows: readonly ListingRow[]) => string[]) | undefined
  // Measuring a text is slow, so only the start that fits into the table is measured.
  const brief = (cell: string) => getTextStart(cell, 4 * width)
  return (rows: readonly ListingRow[]): string[] => {
    if (rows.length === 0) return []
    const cells = rows.map(([id, kind, time, text]): ListingRow => {
      return [toOneLine(id, maxIdColumns), brief(kind), formatLocalTime(time), text]
    })
    const head = layout ? [] : [titles]
    layout ??= chooseLayout(width, [titles, ...cells])
    return layout([...head, ...cells]).map((line, index) => (index < head.length ? style.bold(line) : line))
  }
}

function chooseLayout(width: number, rows: readonly ListingRow[]): (rows: readonly ListingRow[]) => string[] {
  const idWidth = getMaxColumns(rows.map(([id]) => id))
  const kindWidth = Math.min(maxKindColumns, getMaxColumns(rows.map(([, kind]) => kind)))
  const used = idWidth + kindWidth + timeWidth + 3 * columnGap.length
  const longestText = getMaxColumns(rows.map(([, , , text]) => getTextStart(text, minTextColumns)))
  if (used + Math.min(minTextColumns, longestText) <= width)
    return createTableFormatter({ width, limits: [Infinity, kindWidth, timeWidth] })
  // The kind and the time begin a new line if they do not fit. Without a new line, the terminal would break
  // them in the middle of a word.
  const fitsKind = idWidth + kindWidth + timeWidth + 2 * columnGap.length <= width
  const fitsTime = fitsKind || indent.length + kindWidth + columnGap.length + timeWidth <= width
  const addGap = (cell: string, cellWidth: number, fitsNext: boolean) =>
    fitsNext ? padToColumns(cell, cellWidth) + columnGap : `${cell}\n${indent}`
  const formatStackedRow = ([id, kind, time, text]: ListingRow): string => {
    const shownKind = addGap(clipToColumns(kind, kindWidth), kindWidth, fitsTime)
    const head = `${addGap(id, idWidth, fitsKind)}${shownKind}${clipToColumns(time, timeWidth)}`.trimEnd()
    return text === '' ? head : `${head}\n${indent}${clipToColumns(text, width - indent.length)}`
  }
  return (page) => page.map(formatStackedRow)
}

const indent = '  '

const getMaxColumns = (cells: readonly string[]) =>
  cells.reduce((most, cell) => Math.max(most, measureColumns(cell)), 0)
