/** Result of a row on one version of Node. `shown` is printed. `brief` is written into `src/README.md`. */
export interface MeasuredRow {
  work: string
  against: string
  /** The budget. */
  most: string
  shown: string
  brief: string
  isOver: boolean
}

export const formatTableLine = ({ work, against, most, shown, isOver }: MeasuredRow): string =>
  `| ${work} | ${against} | ${most} | ${shown} | ${isOver ? '**over**' : 'ok'} |`

/** Returns the README with its table replaced by new measurements, one column for each Node. */
export function replaceTable(
  readme: string,
  { columns, about }: { columns: { node: string; rows: MeasuredRow[] }[]; about: string },
): string {
  const createCell = (measured: MeasuredRow[], { work, against }: MeasuredRow) => {
    const found = measured.find((each) => each.work === work && each.against === against)
    return found?.isOver ? `**${found.brief}**` : (found?.brief ?? '')
  }
  const lines = [
    `| work | against | at most on Node 20; 24, 26 | ${columns.map(({ node }) => node).join(' | ')} |`,
    `|---|---|---|${'---|'.repeat(columns.length)}`,
    ...(columns[0]?.rows ?? []).map(
      (row) =>
        `| ${row.work} | ${row.against} | ${row.most} | ${columns.map((each) => createCell(each.rows, row)).join(' | ')} |`,
    ),
  ]
  const table = /^\| work \| against \| at most .*\n(\|.*\n)+/m
  const measuredOn = /\bOn \d{4}-\d\d-\d\d, with [^,]*,/
  if (!table.test(readme) || !measuredOn.test(readme)) throw new Error('src/README.md has no such table')
  return readme.replace(table, () => `${lines.join('\n')}\n`).replace(measuredOn, () => `On ${about},`)
}
