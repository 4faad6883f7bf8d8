import { looks, type Span } from './paint.ts'

/** What a line is inside of. */
export type Container = { kind: 'quote' } | Item

/** Its later lines are indented by at least `need` columns, and shown indented by `width`. */
export interface Item {
  kind: 'item'
  need: number
  marker: Span[]
  width: number
}

/** Deeper ones are text, as each level takes room from every line. */
export const mostContainers = 12

const bar: Span = { text: '│ ', look: looks.frame }
const bullets = ['•', '◦', '▪']

/** Two columns are enough for its later lines, even after a wider number: models are careless with blanks. */
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

/** The same item with a box, in place of its bullet or after its number. */
export function withBox(item: Item, isDone: boolean): Item {
  const box: Span = isDone ? { text: '☑', look: looks.done } : { text: '☐', look: looks.marker }
  const kept = item.width > 2 ? item.marker : []
  return {
    ...item,
    marker: [...kept, box, { text: ' ', look: '' }],
    width: kept.length > 0 ? item.width + 2 : 2,
  }
}

/** What is before a line: bars and blanks, and the markers of the items from `firstNew` on, which begin with it. */
export const leadOf = (containers: readonly Container[], firstNew = containers.length): Span[] =>
  containers.flatMap((each, at) => {
    if (each.kind === 'quote') return [bar]
    return at >= firstNew ? each.marker : [{ text: ' '.repeat(each.width), look: '' }]
  })

/** A line of code without what its containers have before it; `undefined` where a quote does not go on. */
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
