import { measureLineWidth, type StyledLine, spanStyles } from '../spans.ts'
import { type ListMarker, maxLayoutDepth } from './line-start.ts'

const bullets = ['•', '◦', '▪']

interface ListItem {
  /** A line with at least this indentation belongs to the item. */
  minIndent: number
  /**
   * Columns before the text of the item in the source. `indent` counts the columns before the text on the
   * terminal.
   */
  sourceIndent: number
  indent: number
}

/** The list items around the current line, from the outermost to the innermost. */
export class OpenListItems {
  readonly #items: ListItem[] = []
  /** For each level, the sign and the number of the last item in the open list. */
  readonly #lists: { sign: string; number: number }[] = []

  get indent(): number {
    return this.#items.at(-1)?.indent ?? 0
  }

  get sourceIndent(): number {
    return this.#items.at(-1)?.sourceIndent ?? 0
  }

  get isEmpty(): boolean {
    return this.#items.length === 0
  }

  contains(indent: number): boolean {
    return indent >= (this.#items.at(-1)?.minIndent ?? 0)
  }

  leave(indent: number): void {
    while (!this.contains(indent)) this.#items.pop()
  }

  /**
   * Ends the lists that are nested deeper than the open items. The next item at such a level begins a new
   * list.
   */
  endClosedLists(): void {
    this.#lists.length = this.#items.length
  }

  /**
   * Returns the start of the first row of the item: `lead`, such as the bullet of an outer item, and the
   * bullet of this item.
   */
  open({ mark, indent, textIndent }: ListMarker, lead: StyledLine): StyledLine {
    if (this.#items.length >= maxLayoutDepth) this.#items.pop()
    const level = this.#items.length
    const sign = mark.slice(-1)
    const isNumbered = mark !== sign
    const last = this.#lists[level]
    // In CommonMark, the first number of a list decides the numbers of all its items.
    const number = last?.sign === sign ? last.number + 1 : isNumbered ? Number.parseInt(mark, 10) : 1
    this.#lists.splice(level, Infinity, { sign, number })
    const bullet = isNumbered ? `${number}${sign}` : bullets[level % bullets.length]
    const start = [...lead, { text: `${bullet} `, sgr: spanStyles.marker }]
    this.#items.push({
      minIndent: Math.min(textIndent, indent + 2),
      sourceIndent: textIndent,
      indent: measureLineWidth(start),
    })
    return start
  }
}
