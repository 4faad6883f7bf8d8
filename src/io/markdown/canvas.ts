import { widthOf } from '../width.ts'

/** A piece of text and how it looks: the parameters of a terminal's SGR sequence, '' if it is plain. */
export interface Span {
  text: string
  look: string
  /** Where it leads, if the terminal shows links of its own. */
  target?: string
}

/** How each thing looks. Only the 16 colours, which every terminal shows in its own theme. */
export const looks = {
  /** By level; deeper ones look like the last. */
  headings: ['1;4;35', '1;35', '1'],
  bold: '1',
  italic: '3',
  strike: '9',
  code: '36',
  address: '2;4',
  frame: '2',
  /** A mark that is shown, as its partner may never come. */
  mark: '2',
  marker: '36',
  done: '32',
} as const

const textOf = (spans: readonly Span[]): string => spans.map(({ text }) => text).join('')

/** Spans as text. Each ends plain and without a link, so that nothing is left on wherever the text stops. */
export function paint(spans: readonly Span[], isColoured: boolean): string {
  if (!isColoured) return textOf(spans)
  let painted = ''
  for (let at = 0; at < spans.length; ) {
    const { look, target } = spans[at] as Span
    let text = ''
    while (spans[at]?.look === look && spans[at]?.target === target) text += spans[at++]?.text
    const shown = look === '' || text === '' ? text : `\x1b[${look}m${text}\x1b[0m`
    painted += target === undefined ? shown : `\x1b]8;;${target}\x1b\\${shown}\x1b]8;;\x1b\\`
  }
  return painted
}

/** How many columns something takes. Most cells are ASCII, or one character of Chinese or Japanese: those need no slow look. */
function measure(spans: readonly Span[]): number {
  const text = textOf(spans)
  if (/^[\x20-\x7e]*$/.test(text)) return text.length
  return /^[\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uff01-\uff60]$/.test(text) ? 2 : widthOf(text)
}

const widestRule = 80

interface PageOptions {
  /** The terminal's width by now; `Infinity` if it is none. */
  columns: () => number
  isColoured: boolean
}

/** Where the text goes, line by line; each line begins with its lead, such as the bars of quotes. */
export class Canvas {
  readonly columns: () => number
  readonly measure = measure
  readonly #isColoured: boolean
  #text = ''
  #isEmpty = true
  /** The lead of a blank line that is printed if something follows. */
  #skipped: readonly Span[] | undefined

  constructor({ columns, isColoured }: PageOptions) {
    this.columns = columns
    this.#isColoured = isColoured
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
    this.#text += paint(spans, this.#isColoured)
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
    const room = Math.max(Math.min(this.columns(), widestRule) - this.measure(lead), 3)
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
