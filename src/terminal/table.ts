import { oneLine } from './escape.ts'

const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }

/** A line of tab-separated fields that any tool can split: what would break it is escaped. */
export function toTsv(fields: readonly string[]): string {
  return `${fields.map((field) => field.replace(/[\t\n\r\\]/g, (char) => escapes[char] ?? char)).join('\t')}\n`
}

/**
 * Makes what lays out rows as aligned columns for a terminal of `width` characters, 0 where that is not known; what
 * does not fit is cut in the last column. Of rows that come later, a column is at least as wide as before.
 */
export function createTable(width: number): (rows: readonly (readonly string[])[]) => string[] {
  const widths: number[] = []
  const most = width || 80
  return (rows) => {
    const shown = rows.map((row) => row.map((cell) => oneLine(cell, most)))
    for (const row of shown) {
      for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
    }
    return shown.map((row) => {
      const line = row.map((cell, column) =>
        column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
      )
      return cut(line.join('  ').trimEnd(), most)
    })
  }
}

const cut = (line: string, width: number) => (line.length > width ? `${line.slice(0, width - 1)}…` : line)
