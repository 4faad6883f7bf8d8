import { clipToColumns, measureColumns, padToColumns } from './width.ts'

/**
 * Returns a function that formats rows as lines. A column never becomes narrower in later calls. With an
 * infinite `width`, no cell is cut. `limits` has the maximum width of each column except the last, which
 * takes the remaining width.
 */
export function createTableFormatter({ width, limits = [] }: { width: number; limits?: readonly number[] }) {
  const widths: number[] = []

  function layOut(row: readonly string[]): string {
    const last = row.length - 1
    const cells = row.slice(0, last).map((cell, column) => padToColumns(cell, widths[column] ?? 0))
    const used = widths.slice(0, last).reduce((sum, each) => sum + each + columnGap.length, 0)
    return [...cells, clipToColumns(row[last] ?? '', Math.max(width - used, 1))].join(columnGap).trimEnd()
  }

  return (rows: readonly (readonly string[])[]): string[] => {
    const shown = rows.map((row) =>
      row.map((cell, column) =>
        column === row.length - 1 ? cell : clipToColumns(cell, limits[column] ?? width),
      ),
    )
    for (const row of shown) {
      for (const [column, cell] of row.slice(0, -1).entries())
        widths[column] = Math.max(widths[column] ?? 0, measureColumns(cell))
    }
    return shown.map(layOut)
  }
}

export const columnGap = '  '
