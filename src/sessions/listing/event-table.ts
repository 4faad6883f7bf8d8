import { columnGap, createTableFormatter } from '../../io/columns.ts'
import { toOneLine } from '../../io/escape.ts'
import { getLocalTimeParts } from '../../io/local-time.ts'
import type { Style } from '../../io/style.ts'
import { clipToColumns, measureColumns, padToColumns } from '../../io/width.ts'
import { getTextStart } from '../../wire/text-start.ts'

type EventRow = readonly [id: string, type: string, time: string, text: string]

const eventTimeWidth = '00:00:00'.length

const maxTypeColumns = 'agent.thread_context_compacted'.length

/** Minimum width of the text column. If there is less space, each text gets its own line. */
const minTextColumns = 35

const maxIdColumns = 1024

/**
 * Returns a function that formats events page by page for a terminal of `width` columns, with local times. A
 * line above the first event of each day shows the day and the time zone. Long texts are cut. Ids are not
 * cut, because people copy them. The line of the day is not cut, because a cut UTC offset would name another
 * time zone.
 */
export function createEventTableFormatter(
  width: number,
  style: Style,
): (rows: readonly EventRow[]) => string[] {
  let layout: TableLayout | undefined
  let lastDay: string | undefined
  // Measuring a text is slow, so only the start that fits into the table is measured.
  const brief = (cell: string) => getTextStart(cell, 4 * width)
  return (rows) => {
    if (rows.length === 0) return []
    const times = rows.map(([, , timestamp]) => getLocalTimeParts(timestamp))
    const cells = rows.map(([id, type, timestamp, text], index): EventRow => {
      const time = times[index]?.time ?? timestamp
      return [toOneLine(id, maxIdColumns), brief(type), time, text]
    })
    const head: EventRow[] = layout ? [] : [['ID', 'TYPE', 'TIME', 'TEXT']]
    layout ??= chooseTableLayout(width, cells, eventTimeWidth)
    const laidOut = layout([...head, ...cells])
    const lines = laidOut.splice(0, head.length).map((title) => style.bold(title))
    for (const [index, line] of laidOut.entries()) {
      const time = times[index]
      const day = time ? `${time.date} (${time.zone})` : lastDay
      if (day !== undefined && day !== lastDay) lines.push(style.dim(day))
      lastDay = day
      lines.push(line)
    }
    return lines
  }
}

/** Formats the rows of any page in the columns of the first page. */
export type TableLayout = (rows: readonly EventRow[]) => string[]

/**
 * Chooses the layout of a table by the rows of its first page. The rows of a list of sessions are `EventRow`s,
 * too: id, status, time of the last change, and title.
 */
export function chooseTableLayout(width: number, rows: readonly EventRow[], timeWidth: number): TableLayout {
  const idWidth = Math.max('ID'.length, getMaxColumns(rows.map(([id]) => id)))
  const types = ['TYPE', ...rows.map(([, type]) => type)]
  const typeWidth = Math.min(maxTypeColumns, getMaxColumns(types))
  const used = [idWidth, typeWidth, timeWidth].reduce((sum, each) => sum + each + columnGap.length, 0)
  const longestText = getMaxColumns(rows.map(([, , , text]) => getTextStart(text, minTextColumns)))
  if (used + Math.min(minTextColumns, longestText) <= width)
    return createTableFormatter({ width, limits: [Infinity, typeWidth, timeWidth] })
  const isNarrow = used > width
  const before = isNarrow ? indent.length : idWidth + columnGap.length
  const room = Math.max(width - before - columnGap.length - timeWidth, 1)
  const below = (line: string) =>
    line === '' ? '' : `\n${indent}${clipToColumns(line, width - indent.length)}`
  /** Puts the text on a separate line. On a narrow terminal, type and time get a line, too. */
  const formatStackedRow = ([id, type, time, text]: EventRow): string => {
    const shownType = padToColumns(clipToColumns(type, Math.min(maxTypeColumns, room)), typeWidth)
    const moment = [shownType, clipToColumns(time, timeWidth)].join(columnGap).trimEnd()
    const head = isNarrow
      ? `${id}${below(moment)}`
      : `${padToColumns(id, idWidth)}${columnGap}${moment}`.trimEnd()
    return `${head}${below(text)}`
  }
  return (page) => page.map(formatStackedRow)
}

const indent = '  '

const getMaxColumns = (cells: readonly string[]) =>
  cells.reduce((most, cell) => Math.max(most, measureColumns(cell)), 0)
