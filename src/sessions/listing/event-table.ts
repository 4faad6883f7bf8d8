import { columnGap, createTableFormatter } from '../../io/columns.ts'
import { toOneLine } from '../../io/escape.ts'
import { formatLocalTime } from '../../io/local-time.ts'
import type { Style } from '../../io/style.ts'
import { clipToColumns, measureColumns, padToColumns } from '../../io/width.ts'
import { getTextStart } from '../../wire/text-start.ts'

/** Cells of a table row. A list of sessions has the session's status as `type`, and its title as `text`. */
type EventRow = readonly [id: string, type: string, time: string, text: string]

const timeWidth = '2026-01-31 14:03:22'.length

const maxTypeColumns = 'agent.thread_context_compacted'.length

/** Minimum width of the text column. If there is less space, each text gets its own line. */
const minTextColumns = 35

const maxIdColumns = 1024

/**
 * Returns a function that formats rows page by page for a terminal of `width` columns, with local times. Long
 * texts are cut. Ids are not cut, because people copy them.
 */
export function createEventTableFormatter(titles: EventRow, width: number, style: Style) {
  let layout: ((rows: readonly EventRow[]) => string[]) | undefined
  // Measuring a text is slow, so only the start that fits into the table is measured.
  const brief = (cell: string) => getTextStart(cell, 4 * width)
  return (rows: readonly EventRow[]): string[] => {
    if (rows.length === 0) return []
    const cells = rows.map(([id, type, time, text]): EventRow => {
      return [toOneLine(id, maxIdColumns), brief(type), formatLocalTime(time), text]
    })
    const head = layout ? [] : [titles]
    layout ??= chooseLayout(width, [titles, ...cells])
    return layout([...head, ...cells]).map((line, index) => (index < head.length ? style.bold(line) : line))
  }
}

function chooseLayout(width: number, rows: readonly EventRow[]): (rows: readonly EventRow[]) => string[] {
  const idWidth = getMaxColumns(rows.map(([id]) => id))
  const typeWidth = Math.min(maxTypeColumns, getMaxColumns(rows.map(([, type]) => type)))
  const used = idWidth + typeWidth + timeWidth + 3 * columnGap.length
  const longestText = getMaxColumns(rows.map(([, , , text]) => getTextStart(text, minTextColumns)))
  if (used + Math.min(minTextColumns, longestText) <= width)
    return createTableFormatter({ width, limits: [Infinity, typeWidth, timeWidth] })
  // Otherwise the terminal would break the line inside of a word.
  const fitsType = idWidth + typeWidth + timeWidth + 2 * columnGap.length <= width
  const fitsTime = fitsType || indent.length + typeWidth + columnGap.length + timeWidth <= width
  const addGap = (cell: string, cellWidth: number, fitsNext: boolean) =>
    fitsNext ? padToColumns(cell, cellWidth) + columnGap : `${cell}\n${indent}`
  const formatStackedRow = ([id, type, time, text]: EventRow): string => {
    const shownType = addGap(clipToColumns(type, typeWidth), typeWidth, fitsTime)
    const head = `${addGap(id, idWidth, fitsType)}${shownType}${clipToColumns(time, timeWidth)}`.trimEnd()
    return text === '' ? head : `${head}\n${indent}${clipToColumns(text, width - indent.length)}`
  }
  return (page) => page.map(formatStackedRow)
}

const indent = '  '

const getMaxColumns = (cells: readonly string[]) =>
  cells.reduce((most, cell) => Math.max(most, measureColumns(cell)), 0)
