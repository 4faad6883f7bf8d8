import { createTable, gap } from '../../io/columns.ts'
import { toLocalTime } from '../../io/local-time.ts'
import { clip, widthOf } from '../../io/width.ts'
import { startOf } from '../../wire/text-start.ts'

/** An event's id, type, time and text. */
type EventRow = readonly string[]

/** A line of the table. */
export interface TableLine {
  kind: 'head' | 'day' | 'event'
  text: string
}

const timeWidth = '00:00:00'.length

/** What is shown of a type and of a text at least. */
const shortestType = 10
const shortestText = 10

/** Ids are never shortened, but a service could send a page of it. */
const longestId = 1024

/**
 * Returns a function that lays out events page by page for a terminal of `width` columns. Times are local, under the day.
 * Ids are whole, for a person to copy: if there is not enough room, the text gives way, then the time, then the type.
 */
export function createEventTable(width: number): (rows: readonly EventRow[]) => TableLine[] {
  let form: Form | undefined
  let lastDay: string | undefined
  return (all) => {
    const lines: TableLine[] = []
    // Measuring takes far longer than showing, and no cell can show more than this.
    const brief = (cell = '') => startOf(cell, 4 * width)
    const rows = all.map(
      ([id = '', type, ...rest]): EventRow => [startOf(id, longestId), brief(type), ...rest],
    )
    if (rows.length === 0) return lines
    const times = rows.map(([, , timestamp = '']) => toLocalTime(timestamp))
    const cells = rows.map(([id, type, timestamp, text], index) => [
      id,
      type,
      times[index]?.time ?? timestamp,
      text,
    ]) as EventRow[]
    const isFirst = form === undefined
    form ??= chooseForm(width, rows)
    const laid = form.layOut(isFirst ? [['ID', 'TYPE', 'TIME', 'TEXT'], ...cells] : cells)
    if (isFirst) lines.push({ kind: 'head', text: laid.shift() ?? '' })
    for (const [index, text] of laid.entries()) {
      const time = form.hasTimes ? times[index] : undefined
      const day = time && `${time.date} (${time.zone})`
      if (day !== undefined && day !== lastDay) {
        lines.push({ kind: 'day', text: clip(day, width) })
        lastDay = day
      }
      lines.push({ kind: 'event', text })
    }
    return lines
  }
}

interface Form {
  hasTimes: boolean
  layOut(rows: readonly EventRow[]): string[]
}

/** Chosen for the first page; later pages have the same head. */
function chooseForm(width: number, rows: readonly EventRow[]): Form {
  const idWidth = Math.max('ID'.length, widest(rows.map(([id = '']) => id)))
  const typeWidth = Math.max(shortestType, widest(rows.map(([, type = '']) => type)))
  const room = width - idWidth - gap.length - shortestText - gap.length
  const hasTimes = typeWidth + gap.length + timeWidth <= room
  const mostType = Math.max(shortestType, Math.min(typeWidth, room))
  const layOut = createTable({ width, most: [Infinity, mostType, ...(hasTimes ? [timeWidth] : [])] })
  const pick = ([id = '', type = '', time = '', text = '']: EventRow) => [
    id,
    widthOf(type) <= mostType ? type : shorten(type, mostType),
    ...(hasTimes ? [time] : []),
    text,
  ]
  return { hasTimes, layOut: (page) => layOut(page.map(pick)) }
}

/** `session.…rescheduled`: what kind it is, and of its end what `width` has room for. */
function shorten(word: string, width: number): string {
  const [begin = ''] = /^[a-z]{1,7}[._]/.exec(word) ?? []
  const kind = width < begin.length + 5 ? '' : begin
  const tail = Math.max(4, width - kind.length - 1)
  if (word.length <= kind.length + 1 + tail || /[^!-~]/.test(word)) return word
  return `${kind}…${word.slice(-tail).replace(/^[^_]*_(?=.)/, '')}`
}

const widest = (cells: readonly string[]) => cells.reduce((most, cell) => Math.max(most, widthOf(cell)), 0)
