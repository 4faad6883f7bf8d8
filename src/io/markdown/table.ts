import { textOf } from './cell.ts'
import type { Flow } from './flow.ts'
import type { Page } from './page.ts'
import type { Span } from './paint.ts'
import { printRecord } from './record.ts'
import { type Alignment, fitColumns, type Layout, printRow, printRule } from './table-layout.ts'

/** How much of a table is laid out together, in characters; later rows get its widths and come one by one. */
const longestTable = 64 * 1024
const mostColumns = 64

/** Lines that begin with a bar: tables, one after another, and text. */
export interface Tables {
  add(line: string, lead: readonly Span[]): void
  /** Prints what was kept back, for something else comes. */
  end(): void
}

export function createTables(page: Page, flow: Flow): Tables {
  let table: Table | undefined

  function end(): void {
    if (!table) return
    const text = table.end()
    if (text === undefined) flow.endParagraph()
    else {
      flow.start(table.lead, table.lead)
      flow.push(text)
      flow.end()
    }
    table = undefined
  }

  return {
    add(line, lead) {
      if (table && !table.add(line)) end()
      table ??= createTable(page, lead, line)
    },
    end,
  }
}

/** A table if its second line says so, otherwise text. */
interface Table {
  readonly lead: readonly Span[]
  /** Returns false where the line makes no table of the one before. */
  add(line: string): boolean
  /** Prints what was kept back; returns the line that turned out to be text. */
  end(): string | undefined
}

function createTable(page: Page, lead: readonly Span[], header: string): Table {
  let rows: string[][] = []
  let size = 0
  let alignments: Alignment[] | undefined
  let head: string[] | undefined
  let layout: Layout | undefined
  let hasRecords = false

  function begin(): string[] {
    const room = page.columns - page.measure(textOf(lead))
    const widths = fitColumns(rows, page, room)
    const first = rows.shift() ?? []
    if (!widths) return first
    layout = { widths, alignments: alignments ?? [] }
    printRow(page, lead, first, layout, true)
    printRule(page, lead, layout)
    return first
  }

  function print(): void {
    if (rows.length === 0) return
    head ??= begin()
    for (const row of rows) {
      if (layout) printRow(page, lead, row, layout)
      else printRecord(page, lead, head, row)
      hasRecords = true
    }
    rows = []
  }

  return {
    lead,
    add(line) {
      if (alignments) {
        rows.push(withWidth(cellsOf(line), alignments.length))
        size += line.length
        if (size > longestTable) print()
        return true
      }
      const names = cellsOf(header)
      const found = readAlignments(line)
      if (found?.length !== names.length || names.length > mostColumns) return false
      alignments = found
      rows.push(names)
      return true
    },
    end() {
      print()
      // A head alone is no record.
      return alignments && (layout || hasRecords) ? undefined : header
    },
  }
}

/** The row under the head, such as `|---|:-:|`. */
function readAlignments(line: string): Alignment[] | undefined {
  if (!/^[|:\- \t]+$/.test(line)) return undefined
  const cells = cellsOf(line)
  if (!cells.every((cell) => /^:?-+:?$/.test(cell))) return undefined
  return cells.map((cell) => (!cell.endsWith(':') ? 'left' : cell.startsWith(':') ? 'center' : 'right'))
}

/** Cells that no column is there for go into the last one. */
const withWidth = (cells: string[], count: number) =>
  cells.length <= count ? cells : [...cells.slice(0, count - 1), cells.slice(count - 1).join(' | ')]

/** What is between the bars; one after a backslash is text. */
function cellsOf(line: string): string[] {
  const cells: string[] = []
  let from = 1
  let cell = ''
  for (let at = line.indexOf('|', 1); at >= 0; at = line.indexOf('|', at + 1)) {
    cell += line.slice(from, at)
    from = at + 1
    if (cell.endsWith('\\')) cell = `${cell.slice(0, -1)}|`
    else {
      cells.push(cell.trim())
      cell = ''
    }
  }
  cell += line.slice(from)
  if (cell.trim() !== '') cells.push(cell.trim())
  return cells
}
