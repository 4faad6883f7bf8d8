import { Inline } from './inline.ts'
import type { Page } from './page.ts'
import type { Span } from './paint.ts'
import { Words } from './words.ts'

/** A line has room for this many columns, however wide its lead is; a narrower terminal wraps it itself. */
const leastRoom = 16

/** Puts words on the page as they come, each line as full as it can be. */
export class Flow {
  readonly #page: Page
  readonly #words = new Words((word, hasBlank) => this.#place(word, hasBlank))
  #inline = new Inline()
  #isInParagraph = false
  /** What is before the lines after the first. */
  #nextLead: readonly Span[] = []
  #leadWidth = 0
  #column = 0
  /** Nothing but the lead is on the line. */
  #isFirst = true

  constructor(page: Page) {
    this.#page = page
  }

  /** Whether the last line was text, so that the next one may go on with its paragraph. */
  get isInParagraph(): boolean {
    return this.#isInParagraph
  }

  /** Begins a line of a paragraph, or with a look a heading. The second lead is for lines that are wrapped. */
  start(lead: readonly Span[], nextLead: readonly Span[], look?: string): void {
    if (!this.#isInParagraph || look) this.#inline = new Inline(look)
    this.#inline.startLine()
    this.#isInParagraph = !look
    this.#page.startLine(lead)
    this.#nextLead = nextLead
    this.#leadWidth = this.#column = this.#page.measure(lead)
    this.#isFirst = true
  }

  push(text: string): void {
    this.#words.push(text)
  }

  end(): void {
    this.#words.end()
    this.#page.endLine()
  }

  /** Something else came: no emphasis goes on. */
  endParagraph(): void {
    this.#isInParagraph = false
  }

  #place(word: string, hasBlank: boolean): void {
    const isSpaced = hasBlank && !this.#isFirst
    const spans = this.#inline.read(word, isSpaced)
    const limit = Math.max(this.#page.columns, this.#leadWidth + leastRoom)
    if (!this.#isFirst && this.#column + this.#page.measure(spans) > limit) {
      this.#page.endLine()
      this.#page.startLine(this.#nextLead)
      this.#column = this.#leadWidth
      // The blank before the word.
      if (isSpaced) spans.shift()
    }
    const width = this.#page.measure(spans)
    this.#column += width
    this.#isFirst &&= width === 0
    this.#page.write(spans)
  }
}
