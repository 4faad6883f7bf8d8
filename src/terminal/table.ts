import { oneLine } from './escape.ts'

const escapes: Record<string, string> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', '\\': '\\\\' }

/** A line of tab-separated fields that any tool can split: what would break it is escaped. */
export function toTsv(fields: readonly string[]): string {
  return `${fields.map((field) => field.replace(/[\t\n\r\\]/g, (char) => escapes[char] ?? char)).join('\t')}\n`
}

/** Rows as aligned columns for a terminal of `width` characters; what does not fit is cut in the last column. */
export function toTable(rows: readonly (readonly string[])[], width: number): string[] {
  const shown = rows.map((row) => row.map((cell) => oneLine(cell, width)))
  const widths = (shown[0] ?? []).map((_, column) =>
    Math.max(...shown.map((row) => row[column]?.length ?? 0)),
  )
  return shown.map((row) => {
    const line = row.map((cell, column) =>
      column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0),
    )
    return cut(line.join('  ').trimEnd(), width)
  })
}

const cut = (line: string, width: number) => (line.length > width ? `${line.slice(0, width - 1)}…` : line)
