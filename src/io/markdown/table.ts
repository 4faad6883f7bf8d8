import { type Canvas, looks, type Span } from './canvas.ts'
import { type LinkStyle, readLine } from './inline.ts'

/** How much of a table is laid out together, in characters. Later rows get the same widths and are printed at once. */
const longestTable = 64 * 1024
const mostColumns = 64
/** A line of a table is not wider, even in a pipe: short cells beside a long one must not become a lot of blanks. */
const widestTable = 500
const narrowest = 3

type Alignment = 'left' | 'right' | 'center'

/** One line of a cell. */
interface CellLine {
  spans: Span[]
  width: number
}

/** A row of cells, each of lines. */
type TableRow = CellLine[][]

/**
 * A table if its second line says so, otherwise text. It is kept back until its end has come, for only then it is known
 * how wide its columns are, and whether it fits: a table that is wider than the terminal is printed as it came.
 */
export class Table {
  readonly lead: readonly Span[]
  readonly #page: Canvas
  readonly #links: LinkStyle
  /** The lines that are kept back. */
  #lines: string[]
  #size: number
  /** Known once the second line came. */
  #alignments: Alignment[] | undefined
  /** Known once rows are printed: how wide each column is, or that lines are printed as they come. */
  #widths: number[] | 'as it came' | undefined

  constructor(page: Canvas, lead: readonly Span[], header: string, links: LinkStyle) {
    this.#page = page
    this.#links = links
    this.lead = lead
    this.#lines = [header]
    this.#size = header.length
  }

  /** Returns false if the line makes no table of the one before. */
  add(line: string): boolean {
    if (!this.#alignments) {
      const names = cellsOf(this.#lines[0] as string)
      const alignments = readAlignments(line)
      if (alignments?.length !== names.length || names.length > mostColumns) return false
      this.#alignments = alignments
    }
    this.#lines.push(line)
    this.#size += line.length
    if (this.#size > longestTable) this.#print(this.#alignments)
    return true
  }

  /** Prints what was kept back; returns the first line if it is text after all. */
  end(): string | undefined {
    if (!this.#alignments) return this.#lines[0]
    if (this.#lines.length > 0) this.#print(this.#alignments)
    return undefined
  }

  #print(alignments: readonly Alignment[]): void {
    const isFirst = this.#widths === undefined
    const lines = this.#lines
    this.#lines = []
    const rows = lines
      .filter((_, at) => !isFirst || at !== 1)
      .map((line, at) => this.#readRow(line, alignments.length, isFirst && at === 0))
    this.#widths ??= this.#fit(rows)
    if (this.#widths === 'as it came') {
      for (const line of lines) this.#page.printLine([...this.lead, { text: line, look: '' }])
      return
    }
    for (const [at, row] of rows.entries()) {
      this.#printRow(row, this.#widths, alignments)
      if (isFirst && at === 0) this.#printRule(this.#widths)
    }
  }

  #readRow(line: string, count: number, isHead: boolean): TableRow {
    const cells = cellsOf(line)
    // Cells beyond the last column go into it.
    if (cells.length > count) cells.splice(count - 1, Infinity, cells.slice(count - 1).join(' | '))
    return cells.map((cell) =>
      cutLines(cell).map((text) => {
        const spans = readLine(text.trim(), { base: isHead ? looks.bold : '', links: this.#links })
        return { spans, width: this.#page.measure(spans) }
      }),
    )
  }

  #fit(rows: readonly TableRow[]): number[] | 'as it came' {
    const widths: number[] = []
    for (const row of rows)
      for (const [column, lines] of row.entries())
        widths[column] = lines.reduce((most, { width }) => Math.max(most, width), widths[column] ?? narrowest)
    const whole = widths.reduce((sum, width) => sum + width, 0) + 3 * (widths.length - 1)
    const room = Math.min(this.#page.columns(), widestTable) - this.#page.measure(this.lead)
    return whole <= room ? widths : 'as it came'
  }

  #printRow(row: TableRow, widths: readonly number[], alignments: readonly Alignment[]): void {
    const height = Math.max(1, ...row.map(({ length }) => length))
    for (let at = 0; at < height; at++) {
      const spans: Span[] = []
      // A line ends with its last cell that has text.
      const end = row.findLastIndex((lines) => (lines[at]?.width ?? 0) > 0)
      for (let column = 0; column <= end; column++) {
        const line = row[column]?.[at] ?? { spans: [], width: 0 }
        const free = Math.max(0, (widths[column] ?? 0) - line.width)
        const alignment = alignments[column]
        const before = alignment === 'right' ? free : alignment === 'center' ? free >> 1 : 0
        if (column > 0) spans.push({ text: ' │ ', look: looks.frame })
        spans.push({ text: ' '.repeat(before), look: '' }, ...line.spans)
        if (column < end) spans.push({ text: ' '.repeat(free - before), look: '' })
      }
      this.#page.printLine([...this.lead, ...spans])
    }
  }

  #printRule(widths: readonly number[]): void {
    const text = widths.map((width) => '─'.repeat(width)).join('─┼─')
    this.#page.printLine([...this.lead, { text, look: looks.frame }])
  }
}

/** The row under the head, such as `|---|:-:|`. */
function readAlignments(line: string): Alignment[] | undefined {
  if (!/^[|:\- \t]+$/.test(line)) return undefined
  const cells = cellsOf(line)
  if (!cells.every((cell) => /^:?-+:?$/.test(cell))) return undefined
  return cells.map((cell) => (!cell.endsWith(':') ? 'left' : cell.startsWith(':') ? 'center' : 'right'))
}

/** The text between the bars; a bar after a backslash is text. */
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

/** Cuts a cell at each `<br>` that is not in code. */
function cutLines(cell: string): string[] {
  const lines: string[] = []
  let from = 0
  let ticks = 0
  for (const { 0: found, index } of cell.matchAll(/\\[^`]|`+|<br ?\/?>/gi)) {
    if (found[0] === '`' && (ticks === 0 || ticks === found.length)) ticks = ticks > 0 ? 0 : found.length
    if (found[0] !== '<' || ticks > 0) continue
    lines.push(cell.slice(from, index))
    from = index + found.length
  }
  return [...lines, cell.slice(from)]
}
