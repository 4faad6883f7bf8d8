import { createInline, type Inline } from './inline.ts'
import type { Page } from './page.ts'
import type { Span } from './paint.ts'
import { createWords } from './words.ts'

/** Puts words on the page as they come, each line as full as it can be. */
export interface Flow {
  /** The last line was text, and the next one may go on with it. */
  readonly isInParagraph: boolean
  /** A line of a paragraph, or with a look a heading. `first` is before it, `next` before what is moved to a new one. */
  start(first: readonly Span[], next: readonly Span[], look?: string): void
  push(text: string): void
  end(): void
  /** Something else came: no emphasis goes on. */
  endParagraph(): void
}

/** A line is never narrower than this; a terminal that is wraps it itself. */
const leastRoom = 16

export function createFlow(page: Page): Flow {
  let inline: Inline = createInline()
  let isInParagraph = false
  let next: readonly Span[] = []
  let column = 0
  let lead = 0
  let isFirst = true
  let isOwed = false

  function place(word: string, hasBlank: boolean): void {
    const isSpaced = (hasBlank || isOwed) && !isFirst
    const spans = inline.read(word, isSpaced)
    const width = page.measure(spans.map(({ text }) => text).join(''))
    // A mark alone shows nothing.
    isOwed = isSpaced && spans.length === 1
    if (isOwed) return
    if (!isFirst && column + width > Math.max(page.columns, lead + leastRoom)) {
      page.endLine()
      page.startLine(next)
      column = lead
      // The blank that was before it.
      if (isSpaced) spans.shift()
      column += isSpaced ? width - 1 : width
    } else column += width
    isFirst &&= width === 0
    page.write(spans)
  }

  const words = createWords(place)
  return {
    get isInParagraph() {
      return isInParagraph
    },
    start(first, following, look) {
      if (!isInParagraph || look) inline = createInline(look)
      isInParagraph = !look
      page.startLine(first)
      next = following
      lead = column = page.measure(first.map(({ text }) => text).join(''))
      isFirst = true
      isOwed = false
    },
    push: words.push,
    end() {
      words.end()
      page.endLine()
    },
    endParagraph() {
      isInParagraph = false
    },
  }
}
