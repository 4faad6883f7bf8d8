import type { Flow } from './flow.ts'
import type { Page } from './page.ts'
import type { Span } from './paint.ts'
import { printRecord } from './record.ts'
import { type Alignment, fitColumns, type Layout, printRow, printRule } from './table-layout.ts'

/** How much of a table is laid out together, in characters. Later rows get the same widths and are printed at once. */
const longestTable = 64 * 1024
const mostColumns = 64

/** Lines that begin with a bar: tables, one after another, and text. */
export class Tables {
  readonly #page: Page
  readonly #flow: Flow
  #table: Table | undefined

  constructor(page: Page, flow: Flow) {
    this.#page = page
    this.#flow = flow
  }

  add(line: string, lead: readonly Span[]): void {
    if (this.#table && !this.#table.add(line)) this.end()
    this.#table ??= new Table(this.#page, lead, line)
  }

  /** Prints what was kept back, as something else comes. */
  end(): void {
    if (!this.#table) return
    const { lead } = this.#table
    const text = this.#table.end()
    this.#table = undefined
    if (text === undefined) this.#flow.endParagraph()
    else {
      this.#flow.start(lead, lead)
      this.#flow.push(text)
      this.#flow.end()
    }
  }
}

/** A table if its second line says so, otherwise text. */
class Table {
  readonly lead: readonly Span[]
  readonly #page: Page
  readonly #header: string
  /** Known once the second line came. */
  #alignments: Alignment[] | undefined
  /** Rows that are kept back, and how many characters they have. */
  #rows: string[][] = []
  #size = 0
  /** Known once rows are printed. */
  #head: string[] | undefined
  /** How the columns are printed, if there is room for them. */
  #layout: Layout | undefined
  #isShown = false

  constructor(page: Page, lead: readonly Span[], header: string) {
    this.#page = page
    this.lead = lead
    this.#header = header
  }

  /** Returns false where the line makes no table of the one before. */
  add(line: string): boolean {
    if (!this.#alignments) return this.#addAlignments(line)
    this.#rows.push(withWidth(cellsOf(line), this.#alignments.length))
    this.#size += line.length
    if (this.#size > longestTable) this.#print()
    return true
  }

  /** Prints what was kept back; returns the first line where nothing was printed, as it is text. */
  end(): string | undefined {
    this.#print()
    return this.#isShown ? undefined : this.#header
  }

  #addAlignments(line: string): boolean {
    const names = cellsOf(this.#header)
    const alignments = readAlignments(line)
    if (alignments?.length !== names.length || names.length > mostColumns) return false
    this.#alignments = alignments
    this.#rows.push(names)
    return true
  }

  #print(): void {
    if (this.#rows.length === 0) return
    this.#head ??= this.#printHead()
    for (const row of this.#rows) {
      if (this.#layout) printRow(this.#page, this.lead, row, this.#layout)
      else printRecord(this.#page, row, { lead: this.lead, head: this.#head, isFirst: !this.#isShown })
      this.#isShown = true
    }
    this.#rows = []
  }

  /** Prints the head if there is room for the columns; returns their names. */
  #printHead(): string[] {
    const widths = fitColumns(this.#rows, this.#page, this.#page.columns - this.#page.measure(this.lead))
    const head = this.#rows.shift() ?? []
    if (!widths) return head
    this.#layout = { widths, alignments: this.#alignments ?? [] }
    printRow(this.#page, this.lead, head, this.#layout, true)
    printRule(this.#page, this.lead, this.#layout)
    this.#isShown = true
    return head
  }
}

/** The row under the head, such as `|---|:-:|`. */
function readAlignments(line: string): Alignment[] | undefined {
  if (!/^[|:\- \t]+$/.test(line)) return undefined
  const cells = cellsOf(line)
  if (!cells.every((cell) => /^:?-+:?$/.test(cell))) return undefined
  return cells.map((cell) => (!cell.endsWith(':') ? 'left' : cell.startsWith(':') ? 'center' : 'right'))
}

/** Cells beyond the last column go into it. */
const withWidth = (cells: string[], count: number) =>
  cells.length <= count ? cells : [...cells.slice(0, count - 1), cells.slice(count - 1).join(' | ')]

/** What is between the bars; a bar after a backslash is text. */
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
