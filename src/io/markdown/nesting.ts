import { looks, type Span } from './canvas.ts'

/** What a line is inside of. */
export type Container = { kind: 'quote' } | Item

/** Its later lines are indented by at least `need` columns, and shown indented by `width`. */
interface Item {
  kind: 'item'
  need: number
  marker: Span[]
  width: number
}

/** Deeper ones are text, as each level takes room from every line. */
const mostContainers = 12

const bar: Span = { text: '│ ', look: looks.frame }
const bullets = ['•', '◦', '▪']

/** Two columns are enough for its later lines, even after a wider number: models are careless with blanks. */
function createItem(typed: string, indent: number, around: readonly Container[]): Container {
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
function withBox(item: Item, isDone: boolean): Item {
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

/** A line of code without what its containers have before it; `undefined` if a quote does not go on. */
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

/** The quotes and items that the line being read is inside of. */
export class Nesting {
  /** Never changed in place: a block of code keeps those that it is in. */
  #containers: readonly Container[] = []
  /** How many of the containers this line is known to go on with. */
  #entered = 0
  /** Which container is the first that begins on this line. */
  #firstNew = Infinity
  /** In columns. A quote's mark takes the blank after it, so there it begins below zero. */
  #indent = 0

  get containers(): readonly Container[] {
    return this.#containers
  }

  /** By how many columns what comes next is indented. */
  get indent(): number {
    return Math.max(this.#indent, 0)
  }

  /** Whether the line goes on with all that the one before was in. */
  get isSame(): boolean {
    return this.#entered === this.#containers.length && this.#firstNew === Infinity
  }

  /** Whether an item begins on this line. */
  get hasMarker(): boolean {
    return this.#containers.slice(this.#firstNew).some(({ kind }) => kind === 'item')
  }

  /** Whether what comes next is the beginning of an item. */
  get isAtItem(): boolean {
    return this.#containers.slice(this.#firstNew).at(-1)?.kind === 'item'
  }

  get hasRoom(): boolean {
    return this.#entered < mostContainers
  }

  /** What is before the line, with the markers of items that begin on it. */
  get firstLead(): Span[] {
    return leadOf(this.#containers, this.#firstNew)
  }

  /** What is before the lines after it. */
  get nextLead(): Span[] {
    return leadOf(this.#containers)
  }

  startLine(): void {
    this.#entered = 0
    this.#indent = 0
    this.#firstNew = Infinity
  }

  addBlank(char: string): void {
    this.#indent += char === '\t' ? 4 - (this.#indent & 3) : 1
  }

  /** Enters what goes on before this character; returns whether the character was the mark of a quote that goes on. */
  enter(char: string): boolean {
    let container = this.#containers[this.#entered]
    while (container?.kind === 'item' && this.#indent >= container.need) {
      this.#indent -= container.need
      container = this.#containers[++this.#entered]
    }
    if (container?.kind !== 'quote' || char !== '>') return false
    this.#entered++
    this.#indent = -1
    return true
  }

  /** Leaves what does not go on. */
  leave(): void {
    this.#containers = this.#containers.slice(0, this.#entered)
  }

  /** Leaves what a line without text ends: a quote, not an item. */
  leaveBlank(): void {
    while (this.#containers[this.#entered]?.kind === 'item') this.#entered++
    this.leave()
  }

  openQuote(): void {
    this.leave()
    this.#open({ kind: 'quote' })
    this.#indent = -1
  }

  openItem(marker: string): void {
    this.leave()
    this.#open(createItem(marker, this.indent, this.#containers))
    this.#indent = 0
  }

  /** The item that has just begun is a task. */
  tick(isDone: boolean): void {
    const item = this.#containers.at(-1) as Item
    this.#containers = [...this.#containers.slice(0, -1), withBox(item, isDone)]
  }

  #open(container: Container): void {
    this.#firstNew = Math.min(this.#firstNew, this.#containers.length)
    this.#containers = [...this.#containers, container]
    this.#entered = this.#containers.length
  }
}
