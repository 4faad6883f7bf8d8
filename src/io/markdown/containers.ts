import { looks, type Span } from './paint.ts'

/** What a line is inside of. */
export type Container =
  | { kind: 'quote' }
  /** `need`: by how much its later lines are indented, at least. */
  | { kind: 'item'; need: number; marker: Span[]; width: number }

/** Deeper ones are text: each level takes room from every line. */
export const mostContainers = 12

const bar: Span = { text: '│ ', look: looks.frame }
const bullets = ['•', '◦', '▪']

/** An item's marker as it is shown. More than two columns are never asked for: models are careless with them. */
export function createItem(typed: string, indent: number, around: readonly Container[]): Container {
  const depth = around.filter(({ kind }) => kind === 'item').length
  const isNumber = typed.length > 1
  const text = isNumber ? typed : (bullets[depth % bullets.length] as string)
  return {
    kind: 'item',
    need: indent + 2,
    marker: [
      { text, look: looks.marker },
      { text: ' ', look: '' },
    ],
    width: text.length + 1,
  }
}

/** The same item with a box; a bullet gives way to it. */
export function withBox(item: Container, isDone: boolean): Container {
  if (item.kind === 'quote') return item
  const box: Span = isDone ? { text: '☑', look: looks.done } : { text: '☐', look: looks.marker }
  const kept = item.width > 2 ? item.marker : []
  return {
    ...item,
    marker: [...kept, box, { text: ' ', look: '' }],
    width: kept.length > 0 ? item.width + 2 : 2,
  }
}

/** What is before a line: bars and blanks; the items from `fresh` on begin with it, and show their markers. */
export const leadOf = (containers: readonly Container[], fresh = containers.length): Span[] =>
  containers.flatMap((each, at) => {
    if (each.kind === 'quote') return [bar]
    return at >= fresh ? each.marker : [{ text: ' '.repeat(each.width), look: '' }]
  })

/** A line of code without what its containers have before it; `undefined` where a quote is over. */
export function strip(line: string, containers: readonly Container[]): string | undefined {
  let at = 0
  for (const each of containers) {
    let indent = 0
    while (line[at] === ' ' && (each.kind === 'quote' || indent < each.need)) {
      at++
      indent++
    }
    if (each.kind === 'item') continue
    if (line[at] !== '>') return undefined
    at += line[at + 1] === ' ' ? 2 : 1
  }
  return line.slice(at)
}
