import { getDefaults, Lexer, type MarkedToken, Tokenizer } from 'marked'
import type { AnswerPrinter } from '../answer-printer.ts'
import { escapeControls } from '../escape.ts'
import type { Output } from '../output.ts'
import { paint, type StyledLine } from '../spans.ts'
import type { PendingSpinner } from '../spinner.ts'
import { createHighlight, type Highlight } from './highlighter.ts'
import type { LinkStyle } from './inline.ts'
import { endsWithBlankLine, layOutBlocks, layOutCodeLine, layOutVerbatim } from './layout.ts'

/** A block that is longer is printed as it came, in characters: the time that the lexer takes may grow with its square. */
const maxBlockLength = 4000

interface Code {
  /** The fence: one that closes the block is as long at least. */
  fence: string
  /** How many blanks before each line are not a part of it. */
  indent: number
  highlight: Highlight | undefined
}

export interface MarkdownOptions {
  /** The terminal's width by now; Infinity if it is none. */
  columns(): number
  isColoured: boolean
  links: LinkStyle
  /** Shows that a block is not whole yet. */
  waiting?: PendingSpinner | undefined
}

/**
 * Prints Markdown block by block, laid out for a terminal, and never moves or repeats what was printed. Control
 * characters are made visible first, also in a pipe.
 */
export class MarkdownPrinter implements AnswerPrinter {
  readonly #output: Output
  readonly #options: MarkdownOptions
  /** What was added, and not read yet. */
  #pending = ''
  /** What is laid out, and not written yet. */
  #page = ''
  /** The lines of the block that is not whole yet. */
  #open = ''
  /** The line that has no end yet. */
  #line = ''
  /** The indentation of the last block of code in a list. Later lines that are indented as far belong to the same item. */
  #indent = 0
  #code: Code | undefined
  /** A block or a line was too long: up to a blank line, all is printed as it came. */
  #isTooLong = false
  /** Blank lines came: one is printed before what comes next, unless that is the first. */
  #isApart = false
  #isEmpty = true

  constructor(output: Output, options: MarkdownOptions) {
    this.#output = output
    this.#options = options
  }

  add(text: string): void {
    this.#pending += text
  }

  async write(): Promise<void> {
    this.#read(false)
    await this.#writePage()
    if (this.#open + this.#line !== '') this.#options.waiting?.show('waiting for the rest')
  }

  async end(): Promise<void> {
    this.#read(true)
    if (this.#line !== '') this.#readLines('\n')
    this.#printOpen()
    await this.#writePage()
    await this.#output.flush()
  }

  breakLine(): boolean {
    this.#read(true)
    const kept = this.#open + this.#line
    this.#open = ''
    this.#line = ''
    if (kept !== '') this.#print(layOutVerbatim(kept))
    const isBroken = this.#page !== '' && this.#output.isTerminal
    this.#writePage().catch(() => {})
    return isBroken
  }

  async #writePage(): Promise<void> {
    const text = this.#page
    this.#page = ''
    if (text !== '') await this.#output.write(text)
  }

  /** Reads what was added, but for half a character or half a line break at its end. */
  #read(isEnd: boolean): void {
    const text = this.#pending
    const end = isEnd || !/[\r\ud800-\udbff]$/.test(text) ? text.length : text.length - 1
    this.#pending = text.slice(end)
    this.#readLines(escapeControls(text.slice(0, end).replaceAll('\r\n', '\n')))
  }

  #readLines(text: string): void {
    const [rest = '', ...lines] = text.split('\n')
    this.#line += rest
    for (const next of lines) {
      const line = this.#line
      this.#line = next
      this.#takeLine(line)
    }
  }

  #takeLine(line: string): void {
    if (this.#code) this.#takeCode(this.#code, line)
    else if (line.trim() === '') this.#takeBlank()
    else {
      const text = this.#takeIndent(line)
      if (text.length > maxBlockLength) {
        this.#printOpen()
        this.#isTooLong = true
      }
      if (this.#isTooLong && !fence.test(text)) this.#print(layOutVerbatim(text))
      else if (!this.#openCode(text)) this.#takeText(text)
    }
  }

  #takeBlank(): void {
    this.#isTooLong = false
    // The next item of a list may come after a blank line.
    if (isList(this.#open)) this.#open += '\n'
    else {
      this.#printOpen()
      this.#isApart = true
    }
  }

  #takeText(line: string): void {
    const mayBegin = isList(this.#open)
      ? /^\S/.test(line) && (begins.test(line) || endsWithBlankLine(this.#open))
      : begins.test(line)
    this.#open += `${line}\n`
    if (mayBegin) this.#printWhole()
    if (isHeading(this.#open)) this.#printOpen()
    if (this.#open.length <= maxBlockLength) return
    this.#print(layOutVerbatim(this.#open))
    this.#open = ''
    this.#isTooLong = true
  }

  /** Prints what the last line cannot be a part of. */
  #printWhole(): void {
    const tokens = readTokens(this.#open, 'blocks').filter(({ type }) => type !== 'space')
    const last = tokens.at(-1)
    if (!last) return
    const lastPiece = last.type === 'list' ? (last.items.at(-1)?.raw ?? '') : last.raw
    const end = this.#open.trimEnd().length - lastPiece.trimEnd().length
    if (end <= 0) return
    const whole = this.#open.slice(0, end)
    this.#open = this.#open.slice(end)
    this.#layOut(whole)
  }

  #printOpen(): void {
    const text = this.#open
    this.#open = ''
    this.#layOut(text)
  }

  #layOut(text: string): void {
    const { columns, links } = this.#options
    const room = { columns: Math.max(1, columns() - this.#indent), links, depth: this.#indent > 0 ? 1 : 0 }
    this.#print(layOutBlocks(readTokens(text, 'all'), room))
    this.#isApart ||= endsWithBlankLine(text)
  }

  #print(lines: readonly StyledLine[]): void {
    if (lines.length === 0) return
    if (this.#isApart && !this.#isEmpty) this.#page += '\n'
    this.#isApart = false
    this.#isEmpty = false
    const lead = { text: ' '.repeat(this.#indent), sgr: '' }
    for (const line of lines)
      this.#page += `${paint(line.length === 0 ? [] : [lead, ...line], this.#options.isColoured)}\n`
  }

  /** Returns the line without the indentation of the code before it; one that is indented less leaves the item of the code. */
  #takeIndent(line: string): string {
    const indent = indentOf(line)
    if (indent < this.#indent) {
      this.#printOpen()
      this.#indent = indent
    }
    return line.slice(this.#indent)
  }

  /** Returns whether the line opens a block of code. */
  #openCode(line: string): boolean {
    const [, before, mark, info = ''] = fence.exec(line) ?? []
    if (before === undefined || mark === undefined || (mark[0] === '`' && info.includes('`'))) return false
    // An item may begin with code.
    if (before.trim() !== '') this.#takeText(before)
    const indent = this.#indent + before.length
    const isInList = isList(this.#open) || this.#indent > 0
    if (!isInList && indent > 3) return false
    this.#printOpen()
    // Two are enough, even after a wider number: models are careless with blanks.
    this.#indent = isInList && indent >= 2 ? indent : 0
    const language = info.trim().split(/[\s{,]/, 1)[0] as string
    this.#code = { fence: mark, indent, highlight: createHighlight(language) }
    return true
  }

  #takeCode({ fence: { length, 0: mark = '' }, indent, highlight }: Code, line: string): void {
    const text = line.trim()
    if (text.length >= length && text === mark.repeat(text.length)) this.#code = undefined
    else {
      const code = line.slice(Math.min(indent, indentOf(line)))
      this.#print([layOutCodeLine(code, code.length > maxBlockLength ? undefined : highlight)])
    }
  }
}

const fence = /^([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})(.*)$/

/** What may begin a block without a blank line before it. */
const begins = /^ {0,3}(?:[-*+](?:\s|$)|\d{1,9}[.)](?:\s|$)|#{1,6}(?:\s|$)|>)/

const isList = (text: string): boolean => /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/.test(text)

const isHeading = (text: string): boolean => /^ {0,3}#{1,6}(?:[ \t].*)?\n$/.test(text)

const indentOf = (line: string): number => line.length - line.trimStart().length

/** References lead to other blocks, which may not have come. */
class Source extends Tokenizer {
  override reflink(): undefined {}
}

/** So many quotes and items on one line would be too deep for the lexer. */
const tooDeep = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){50}/m

/** Only the blocks, or all that is in them. */
function readTokens(text: string, what: 'blocks' | 'all'): MarkedToken[] {
  const lexer = new Lexer({ ...getDefaults(), tokenizer: new Source() })
  try {
    if (!tooDeep.test(text))
      return (what === 'all' ? lexer.lex(text) : lexer.blockTokens(text, [])) as MarkedToken[]
  } catch {
    // Nothing that an answer says may end a run that was paid for.
  }
  return [{ type: 'html', raw: text, text, block: true, pre: false }]
}
