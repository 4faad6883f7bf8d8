import type { Flow } from './flow.ts'
import { type LineStart, readLineStart } from './line-start.ts'
import type { Outline } from './outline.ts'
import { looks } from './paint.ts'

/** The most blanks before code that are kept back. */
const mostIndent = 100

/** What a line turned out to be, with what was read of it. */
export type Found =
  /** With a look it is a heading. */
  | { kind: 'text'; text: string; look?: string }
  | { kind: 'rule' | 'code'; text: string }
  /** Only the end of the line shows whether it is one. */
  | { kind: 'fence' | 'bar'; text: string }
  /** A quote or an item begins, which is open now; `rest` is what follows its marker. */
  | { kind: 'container'; rest: string }
  /** Without text, but it may have marks of quotes and markers. */
  | { kind: 'blank' }

/** The beginning of a line: its blanks, marks and markers, until it is known what the line is. */
export class Opening {
  readonly #outline: Outline
  readonly #flow: Pick<Flow, 'isInParagraph'>
  #head = ''

  constructor(outline: Outline, flow: Pick<Flow, 'isInParagraph'>) {
    this.#outline = outline
    this.#flow = flow
  }

  startLine(): void {
    this.#head = ''
    this.#outline.startLine()
  }

  /** Returns what the line is, once that is known. */
  push(char: string): Found | undefined {
    if (this.#head === '') {
      if (char === ' ' || char === '\t') {
        this.#outline.addBlank(char)
        return undefined
      }
      if (this.#outline.enter(char)) return undefined
      if (this.#isCode()) return { kind: 'code', text: `${this.#codeIndent()}${char}` }
    }
    this.#head += char
    return this.#decide(false)
  }

  /** The line ended here. Where a container began, its content is asked for next. */
  end(): Found {
    const found = this.#head === '' ? undefined : this.#decide(true)
    return found ?? { kind: 'blank' }
  }

  #isCode(): boolean {
    const { indent, containers } = this.#outline
    return indent >= 4 && containers.length === 0 && !this.#flow.isInParagraph
  }

  #codeIndent(): string {
    return ' '.repeat(Math.min(this.#outline.indent, mostIndent))
  }

  #decide(isLineEnd: boolean): Found | undefined {
    const text = this.#head
    const start = readLineStart(text, isLineEnd, this.#outline.isAtItem)
    switch (start.kind) {
      case 'more':
        return undefined
      case 'quote':
      case 'item':
        return this.#outline.hasRoom ? this.#open(start) : { kind: 'text', text }
      case 'text':
        return { kind: 'text', text }
      case 'bar':
        return { kind: this.#outline.hasMarker ? 'text' : 'bar', text }
      case 'task':
        this.#outline.tick(start.isDone)
        return { kind: 'text', text: text.slice('[x] '.length) }
    }
    // Text and rows of tables may go on with what they are not inside of, but not these.
    this.#outline.leave()
    if (start.kind !== 'heading') return { kind: start.kind, text }
    return { kind: 'text', text: text.slice(start.level), look: headingLook(start.level) }
  }

  #open(start: Extract<LineStart, { kind: 'quote' | 'item' }>): Found {
    this.#head = ''
    if (start.kind === 'item') this.#outline.openItem(start.marker)
    else this.#outline.openQuote()
    return { kind: 'container', rest: start.kind === 'item' ? start.rest : '' }
  }
}

const headingLook = (level: number) => looks.headings[level - 1] ?? looks.headings.at(-1)
