/** Where a run of backticks that begins here ends. */
export function endOfTicks(word: string, at: number): number {
  let end = at
  while (word[end] === '`') end++
  return end
}

/** Where the next run of exactly this many backticks begins. */
export function findTicks(word: string, from: number, count: number): number | undefined {
  for (let at = word.indexOf('`', from); at >= 0; ) {
    const end = endOfTicks(word, at)
    if (end - at === count) return at
    at = word.indexOf('`', end)
  }
  return undefined
}

/** Cuts a cell at each `<br>` that is not in code. */
export function cutLines(cell: string): string[] {
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
