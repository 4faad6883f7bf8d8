import { looks, type Measure, type Paint, type Span } from './paint.ts'

const widestRule = 80

interface PageOptions {
  /** `Infinity` where nothing is wrapped. */
  columns: number
  paint: Paint
  measure: Measure
}

/** Where the text goes, line by line; each line begins with its lead, such as the bars of quotes. */
export class Page {
  readonly columns: number
  readonly measure: Measure
  readonly #paint: Paint
  #text = ''
  #isEmpty = true
  /** The lead of a blank line that is printed if something follows. */
  #skipped: readonly Span[] | undefined

  constructor({ columns, paint, measure }: PageOptions) {
    this.columns = columns
    this.measure = measure
    this.#paint = paint
  }

  /** One blank line, however often it is called, and only if something follows. */
  skip(lead: readonly Span[]): void {
    this.#skipped ??= lead
  }

  startLine(lead: readonly Span[]): void {
    if (this.#skipped && !this.#isEmpty) {
      this.write(withoutEnd(commonOf(this.#skipped, lead)))
      this.endLine()
    }
    this.#skipped = undefined
    this.#isEmpty = false
    this.write(lead)
  }

  write(spans: readonly Span[]): void {
    this.#text += this.#paint(spans)
  }

  endLine(): void {
    this.#text += '\n'
  }

  printLine(spans: readonly Span[]): void {
    this.startLine(spans)
    this.endLine()
  }

  /** A line that has nothing after its lead. */
  printEmpty(lead: readonly Span[]): void {
    this.printLine(withoutEnd(lead))
  }

  drawRule(lead: readonly Span[]): void {
    const room = Math.max(Math.min(this.columns, widestRule) - this.measure(lead), 3)
    this.printLine([...lead, { text: '─'.repeat(room), look: looks.frame }])
  }

  /** Returns what was written since it was last called. */
  take(): string {
    const taken = this.#text
    this.#text = ''
    return taken
  }
}

/** A line without text has no blanks at its end. */
function withoutEnd(lead: readonly Span[]): Span[] {
  const end = lead.findLastIndex(({ text }) => text.trim() !== '')
  return lead
    .slice(0, end + 1)
    .map((span, at) => (at === end ? { ...span, text: span.text.trimEnd() } : span))
}

/** The bars of a quote are on a blank line if they are on the lines before and after it. */
function commonOf(before: readonly Span[], after: readonly Span[]): readonly Span[] {
  const end = before.findIndex(({ text }, at) => after[at]?.text !== text)
  return end < 0 ? before : before.slice(0, end)
}
