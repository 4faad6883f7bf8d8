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
   * Returns the start of the first row of the item: `lead`, such as the bullet of an outer item, and the
   * bullet of this item.
   */
  open({ mark, indent, textIndent }: ListMarker, lead: StyledLine): StyledLine {
    if (this.#items.length >= maxLayoutDepth) this.#items.pop()
    const bullet = mark.length > 1 ? mark : bullets[this.#items.length % bullets.length]
    const start = [...lead, { text: `${bullet} `, sgr: spanStyles.marker }]
    this.#items.push({
      minIndent: Math.min(textIndent, indent + 2),
      sourceIndent: textIndent,
      indent: measureLineWidth(start),
    })
    return start
  }
}
