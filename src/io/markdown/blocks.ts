import { type Canvas, looks, type Span } from './canvas.ts'
import { Code, readFence } from './code.ts'
import type { createHighlight } from './highlighter.ts'
import { Inline, type LinkStyle } from './inline.ts'
import { Nesting } from './nesting.ts'
import { Table } from './table.ts'

/** The longest line that is kept back for what it may turn out to be, in characters. */
const longestLine = 4000

/** Reads line by line what a text is made of, and prints it as soon as that is known. */
export class Blocks {
  readonly #page: Canvas
  readonly #highlightFor: typeof createHighlight
  readonly #links: LinkStyle
  readonly #outline = new Nesting()
  readonly #opening = new Opening(this.#outline, () => this.#isInParagraph)
  /** Whether the last line was text, so that the next one may go on with its paragraph. */
  #isInParagraph = false
  /** The text of the line, while it is one. */
  #inline: Inline | undefined
  /** Whether some of the line's text was shown. */
  #isTextBegun = false
  /** Blanks of a text, and the closing mark of a heading, that are shown if something follows. */
  #blanks = ''
  #isHeading = false
  #table: Table | undefined
  /** What the line is, as far as it was read; `undefined` while only its beginning was. */
  #kind: Exclude<Found['kind'], 'container'> | undefined
  #isLineBegun = false
  /** The line so far, while only its end shows what it is. */
  #keptLine = ''
  #code: Code | undefined

  constructor(page: Canvas, links: LinkStyle, highlightFor: typeof createHighlight) {
    this.#page = page
    this.#links = links
    this.#highlightFor = highlightFor
  }

  /** A table is kept back, and nothing is half-written. */
  get isInTable(): boolean {
    return this.#table !== undefined || this.#kind === 'bar'
  }

  /** The text may be cut anywhere. */
  push(text: string): void {
    for (let at = 0; at < text.length; ) {
      if (text[at] === '\n') {
        this.#endLine()
        at++
        continue
      }
      this.#isLineBegun = true
      const found = this.#kind ? text.indexOf('\n', at) : at + 1
      const end = found < 0 ? text.length : found
      this.#read(text.slice(at, end))
      at = end
    }
  }

  end(): void {
    if (this.#isLineBegun) this.#endLine()
    this.#endTable()
  }

  /** More of a line: one character, until it is known what the line is. */
  #read(text: string): void {
    if (this.#kind === 'text') this.#pushText(text)
    else if (this.#kind === 'code') this.#code?.push(text)
    else if (this.#kind) this.#keep(text)
    else {
      const found = this.#opening.push(text)
      if (found) this.#begin(found)
    }
  }

  #keep(text: string): void {
    this.#keptLine += text
    if (this.#keptLine.length > longestLine) this.#begin({ kind: 'text', text: this.#keptLine })
  }

  #begin(found: Found): void {
    if (found.kind !== 'bar' || !this.#outline.isSame) this.#endTable()
    if (found.kind === 'container') {
      this.#isInParagraph = false
      this.push(found.rest)
      return
    }
    this.#kind = found.kind
    if (found.kind === 'text') this.#beginText(found.text, found.look)
    else if (found.kind === 'rule') this.#drawRule()
    else if (found.kind === 'code') this.#beginCode(found.text)
    else if (found.kind === 'blank') this.#addBlank()
    else {
      this.#outline.leave()
      this.#keptLine = found.text
    }
  }

  #beginText(text: string, look?: string): void {
    // Text may go on with a paragraph that it is not inside of.
    if (!this.#isInParagraph) this.#outline.leave()
    this.#startText(this.#outline.firstLead, text, look)
    this.#isInParagraph = !look
  }

  #startText(lead: readonly Span[], text: string, look?: string): void {
    this.#page.startLine(lead)
    this.#inline = new Inline((spans) => this.#page.write(spans), { base: look, links: this.#links })
    this.#isTextBegun = false
    this.#blanks = ''
    this.#isHeading = look !== undefined
    this.#pushText(text)
  }

  /** Without the blanks before and after the line's text. */
  #pushText(text: string): void {
    const whole = this.#blanks + text
    const end = this.#isHeading ? endOfHeading(whole) : whole.trimEnd().length
    this.#blanks = whole.slice(end)
    if (end === 0) return
    this.#inline?.push(this.#isTextBegun ? whole.slice(0, end) : whole.slice(0, end).trimStart())
    this.#isTextBegun = true
  }

  #endText(): void {
    this.#inline?.end()
    this.#page.endLine()
  }

  #addToTable(line: string): void {
    if (this.#table && !this.#table.add(line)) this.#endTable()
    this.#table ??= new Table(this.#page, this.#outline.nextLead, line, this.#links)
  }

  /** Prints what was kept back, as something else comes. */
  #endTable(): void {
    const table = this.#table
    if (!table) return
    this.#table = undefined
    const text = table.end()
    if (text === undefined) {
      this.#isInParagraph = false
      return
    }
    this.#startText(table.lead, text)
    this.#endText()
    this.#isInParagraph = true
  }

  #drawRule(): void {
    this.#isInParagraph = false
    this.#page.drawRule(this.#outline.firstLead)
  }

  #beginCode(text: string): void {
    this.#code = new Code({ page: this.#page, containers: [], end: 'indent' })
    this.#code.push(text)
  }

  #addBlank(): void {
    this.#isInParagraph = false
    if (this.#outline.hasMarker) this.#page.printEmpty(this.#outline.firstLead)
    else {
      this.#outline.leaveBlank()
      this.#page.skip(this.#outline.nextLead)
    }
  }

  #endLine(): void {
    while (!this.#kind) this.#begin(this.#opening.end())
    const rest = this.#endKind()
    this.#kind = rest === undefined ? 'code' : undefined
    this.#isLineBegun = false
    this.#opening.startLine()
    if (rest) this.push(`${rest}\n`)
  }

  /** Returns the line if it has to be read once more, else ''; `undefined` if the next line is code. */
  #endKind(): string | undefined {
    if (this.#kind === 'code') return this.#code?.endLine()
    if (this.#kind === 'fence') return this.#endFence()
    if (this.#kind === 'text') this.#endText()
    if (this.#kind === 'bar') this.#addToTable(this.#keptLine)
    return ''
  }

  #endFence(): string | undefined {
    const fence = readFence(this.#keptLine)
    if (!fence) {
      this.#begin({ kind: 'text', text: this.#keptLine })
      this.#endText()
      return ''
    }
    const { hasMarker, firstLead, containers } = this.#outline
    if (hasMarker) this.#page.printEmpty(firstLead)
    this.#isInParagraph = false
    const highlight = this.#highlightFor(fence.language)
    this.#code = new Code({ page: this.#page, containers, end: fence.end, highlight })
    return undefined
  }
}

/** The longest mark that closes a heading. */
const longestClosing = 100

/** Where a heading's text ends: before its closing mark, as in `## Title ##`. */
function endOfHeading(text: string): number {
  const { length } = text.trimEnd()
  let from = length
  while (from > 0 && text[from - 1] === '#') from--
  const isClosed = from < length && length - from <= longestClosing && isBlank(text[from - 1])
  return isClosed ? text.slice(0, from).trimEnd().length : length
}

/** The most blanks before code that are kept back. */
const mostIndent = 100

/** What a line turned out to be, with what was read of it. */
type Found =
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
class Opening {
  readonly #outline: Nesting
  readonly #isInParagraph: () => boolean
  #head = ''

  constructor(outline: Nesting, isInParagraph: () => boolean) {
    this.#outline = outline
    this.#isInParagraph = isInParagraph
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
    return indent >= 4 && containers.length === 0 && !this.#isInParagraph()
  }

  #codeIndent(): string {
    return ' '.repeat(Math.min(this.#outline.indent, mostIndent))
  }

  #decide(isLineEnd: boolean): Found | undefined {
    const text = this.#head
    const start = readLineStart(text, isLineEnd, {
      isAtItem: this.#outline.isAtItem,
      isUnderText: this.#isInParagraph() && this.#outline.isSame,
    })
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

/** What a line begins with. */
type LineStart =
  /** Not known yet. */
  | { kind: 'more' }
  | { kind: 'text' }
  | { kind: 'quote' }
  | { kind: 'heading'; level: number }
  | { kind: 'rule' }
  /** An item's marker; `rest` is what was read after it. */
  | { kind: 'item'; marker: string; rest: string }
  | { kind: 'task'; isDone: boolean }
  /** Only the end of the line shows whether it is one. */
  | { kind: 'fence' }
  | { kind: 'bar' }

const more = { kind: 'more' } as const
const text = { kind: 'text' } as const

/** How much is read of a beginning that may be several things, in characters. */
const longestStart = 200

/**
 * Reads the first characters of a line, without the blanks before them. It is called after each character until the
 * line is known, so that no text waits longer than necessary.
 */
function readLineStart(
  head: string,
  isLineEnd: boolean,
  { isAtItem, isUnderText }: { isAtItem: boolean; isUnderText: boolean },
): LineStart {
  const first = head[0] as string
  if (first === '>') return { kind: 'quote' }
  if (first === '|') return { kind: 'bar' }
  if (head.length > longestStart) return isFence(head) ? { kind: 'fence' } : readItem(head)
  if (first === '#') return readHeading(head, isLineEnd)
  if (first === '`' || first === '~') return readFenceStart(head, isLineEnd)
  if (first === '-' || first === '*' || first === '_') return readRule(head, isLineEnd)
  if (first === '=' && isUnderText) return readUnderline(head, isLineEnd)
  if (first === '+') return head.length === 1 && !isLineEnd ? more : readItem(head)
  if (isDigit(first)) return readNumber(head, isLineEnd)
  if (first === '[' && isAtItem) return readTask(head, isLineEnd)
  return text
}

function readHeading(head: string, isLineEnd: boolean): LineStart {
  let level = 1
  while (head[level] === '#') level++
  if (level > 6) return text
  if (head.length === level) return isLineEnd ? { kind: 'heading', level } : more
  return isBlank(head[level]) ? { kind: 'heading', level } : text
}

function readFenceStart(head: string, isLineEnd: boolean): LineStart {
  if (isFence(head)) return { kind: 'fence' }
  return isLineEnd || head !== (head[0] as string).repeat(head.length) ? text : more
}

const isFence = (head: string) => head.startsWith('```') || head.startsWith('~~~')

/** `---`, `* * *`: it may also be an item or text, until something else follows. */
function readRule(head: string, isLineEnd: boolean): LineStart {
  const last = head.at(-1)
  const isOpen = last === head[0] || isBlank(last)
  if (isOpen && !isLineEnd) return more
  const count = head.split(head[0] as string).length - 1
  return isOpen && count >= 3 ? { kind: 'rule' } : readItem(head)
}

/** `===` makes a heading of the text above, which was shown: it can only be underlined. */
function readUnderline(head: string, isLineEnd: boolean): LineStart {
  if (!/^=+[ \t]*$/.test(head)) return text
  return isLineEnd ? { kind: 'rule' } : more
}

function readItem(head: string): LineStart {
  if (!/^[-*+]$/.test(head[0] as string) || !(head.length === 1 || isBlank(head[1]))) return text
  return { kind: 'item', marker: head[0] as string, rest: head.slice(2) }
}

function readNumber(head: string, isLineEnd: boolean): LineStart {
  let end = 1
  while (isDigit(head[end])) end++
  if (end > 9) return text
  if (head.length === end) return isLineEnd ? text : more
  if (head[end] !== '.' && head[end] !== ')') return text
  if (head.length === end + 1 && !isLineEnd) return more
  return head.length === end + 1 || isBlank(head[end + 1])
    ? { kind: 'item', marker: head.slice(0, end + 1), rest: '' }
    : text
}

function readTask(head: string, isLineEnd: boolean): LineStart {
  const [, box, close, after] = head
  if (box === undefined || (close === undefined && /[ xX]/.test(box))) return isLineEnd ? text : more
  if (!/[ xX]/.test(box) || close !== ']') return text
  if (after === undefined && !isLineEnd) return more
  return after === undefined || isBlank(after) ? { kind: 'task', isDone: box !== ' ' } : text
}

const isBlank = (char: string | undefined) => char === ' ' || char === '\t'
const isDigit = (char: string | undefined) => char !== undefined && char >= '0' && char <= '9'
