import { looks, type Paint, type Span } from './paint.ts'

const widestRule = 80

/** Where the text goes. */
export interface Page {
  /** `Infinity` where nothing is wrapped. */
  columns: number
  paint: Paint
  /** The columns that a text takes. */
  measure(text: string): number
  /** One blank line, however often it is called, and only if something follows. */
  skip(lead: readonly Span[]): void
  startLine(lead: readonly Span[]): void
  /** A line that has nothing after its lead. */
  printEmpty(lead: readonly Span[]): void
  write(spans: readonly Span[]): void
  drawRule(lead: readonly Span[]): void
  endLine(): void
  /** What was written since it was last called. */
  take(): string
}

export function createPage({ columns, paint, measure }: Pick<Page, 'columns' | 'paint' | 'measure'>): Page {
  let text = ''
  let isEmpty = true
  let skipped: readonly Span[] | undefined
  const line = (lead: readonly Span[]) => paint(withoutEnd(lead))
  return {
    columns,
    paint,
    measure,
    skip(lead) {
      skipped ??= lead
    },
    startLine(lead) {
      if (skipped && !isEmpty) text += `${line(commonOf(skipped, lead))}\n`
      skipped = undefined
      isEmpty = false
      text += paint(lead)
    },
    printEmpty(lead) {
      this.startLine(withoutEnd(lead))
      this.endLine()
    },
    write(spans) {
      text += paint(spans)
    },
    drawRule(lead) {
      const taken = measure(lead.map((span) => span.text).join(''))
      const room = Math.max(Math.min(columns, widestRule) - taken, 3)
      this.startLine([...lead, { text: '─'.repeat(room), look: looks.frame }])
      this.endLine()
    },
    endLine() {
      text += '\n'
    },
    take() {
      const taken = text
      text = ''
      return taken
    },
  }
}

/** A line without text has no blanks at its end. */
function withoutEnd(lead: readonly Span[]): Span[] {
  const end = lead.findLastIndex(({ text }) => text.trim() !== '')
  return lead
    .slice(0, end + 1)
    .map((span, at) => (at === end ? { ...span, text: span.text.trimEnd() } : span))
}

/** A quote goes on over a blank line if it does on both sides. */
function commonOf(before: readonly Span[], after: readonly Span[]): readonly Span[] {
  const end = before.findIndex(({ text }, at) => after[at]?.text !== text)
  return end < 0 ? before : before.slice(0, end)
}
