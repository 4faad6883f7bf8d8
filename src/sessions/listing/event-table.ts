import { createTable, gap } from '../../io/columns.ts'
import { toLocalTime } from '../../io/local-time.ts'
import { clip, widthOf } from '../../io/width.ts'
import { startOf } from '../../wire/text-start.ts'

/** An event's id, type, time and text. */
type Row = readonly string[]

/** A line of the table. */
export interface TableLine {
  kind: 'head' | 'day' | 'event'
  text: string
}

const timeWidth = '00:00:00'.length

/** A terminal of fewer columns has no room for times. */
const narrow = 60

/** What is shown of a type at least. */
const shortestType = 10

/**
 * Returns a function that lays out events page by page for a terminal of `width` columns. At least half of it is for
 * what they say. Times are local, under the day. Ids that leave no room for that are shortened, or left out.
 */
export function createEventTable(width: number): (rows: readonly Row[]) => TableLine[] {
  let form: Form | undefined
  let lastDay: string | undefined
  return (all) => {
    const lines: TableLine[] = []
    // Measuring takes far longer than showing, and no cell can show more than this.
    const brief = (cell = '') => startOf(cell, 4 * width)
    const rows = all.map(([id, type, ...rest]): Row => [brief(id), brief(type), ...rest])
    if (rows.length === 0) return lines
    const times = rows.map(([, , timestamp = '']) => toLocalTime(timestamp))
    const cells = rows.map(([id, type, timestamp, text], index) => [
      id,
      type,
      times[index]?.time ?? timestamp,
      text,
    ]) as Row[]
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
  layOut(rows: readonly Row[]): string[]
}

/** Chosen for the first page; later pages have the same head. */
function chooseForm(width: number, rows: readonly Row[]): Form {
  const hasTimes = width >= narrow
  const ids = rows.map(([id = '']) => id)
  const typeWidth = Math.max(shortestType, widest(rows.map(([, type = '']) => type)))
  const room = Math.floor(width / 2) - gap.length - (hasTimes ? timeWidth + gap.length : 0)
  const idWidth = [ids, ids.map((id) => shorten(id))]
    .map((shown) => Math.max('ID'.length, widest(shown)))
    .find((each) => each + gap.length + typeWidth <= room)
  const mostType = Math.max(shortestType, idWidth === undefined ? room : room - gap.length - idWidth)
  const most = [...(idWidth === undefined ? [] : [idWidth]), mostType, ...(hasTimes ? [timeWidth] : [])]
  const layOut = createTable({ width, most })
  const pick = ([id = '', type = '', time = '', text = '']: Row) => [
    ...(idWidth === undefined ? [] : [widthOf(id) <= idWidth ? id : shorten(id)]),
    widthOf(type) <= mostType ? type : shorten(type, mostType),
    ...(hasTimes ? [time] : []),
    text,
  ]
  return { hasTimes, layOut: (page) => layOut(page.map(pick)) }
}

/** `sevt_…3f2a`, `session.…rescheduled`: what kind it is, and of its end what `width` has room for. */
function shorten(word: string, width = 0): string {
  const [begin = ''] = /^[a-z]{1,7}[._]/.exec(word) ?? []
  const kind = width > 0 && width < begin.length + 5 ? '' : begin
  const tail = Math.max(4, width - kind.length - 1)
  if (word.length <= kind.length + 1 + tail || /[^!-~]/.test(word)) return word
  const end = word.slice(-tail)
  return `${kind}…${width > 0 ? end.replace(/^[^_]*_(?=.)/, '') : end}`
}

const widest = (cells: readonly string[]) => cells.reduce((most, cell) => Math.max(most, widthOf(cell)), 0)
