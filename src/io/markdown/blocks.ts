import { Code, readFence } from './code.ts'
import { Flow } from './flow.ts'
import type { createHighlight } from './highlighter.ts'
import { type Found, Opening } from './opening.ts'
import { Outline } from './outline.ts'
import type { Page } from './page.ts'
import { Tables } from './table.ts'

/** The longest line that is kept back for what it may turn out to be, in characters. */
const longestLine = 4000

/** Reads line by line what a text is made of, and prints it as soon as that is known. */
export class Blocks {
  readonly #page: Page
  readonly #highlightFor: typeof createHighlight
  readonly #flow: Flow
  readonly #tables: Tables
  readonly #outline = new Outline()
  readonly #opening: Opening
  /** What the line is, as far as it was read; `undefined` while only its beginning was. */
  #kind: Exclude<Found['kind'], 'container'> | undefined
  #isLineBegun = false
  /** The line so far, while only its end shows what it is. */
  #keptLine = ''
  #code: Code | undefined

  constructor(page: Page, highlightFor: typeof createHighlight) {
    this.#page = page
    this.#highlightFor = highlightFor
    this.#flow = new Flow(page)
    this.#tables = new Tables(page, this.#flow)
    this.#opening = new Opening(this.#outline, this.#flow)
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
    this.#tables.end()
  }

  /** More of a line: one character, until it is known what the line is. */
  #read(text: string): void {
    if (this.#kind === 'text') this.#flow.push(text)
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
    if (found.kind !== 'bar' || !this.#outline.isSame) this.#tables.end()
    if (found.kind === 'container') {
      this.#flow.endParagraph()
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

  #beginText(text: string, look: string | undefined): void {
    const outline = this.#outline
    // Text may go on with a paragraph that it is not inside of.
    if (!this.#flow.isInParagraph) outline.leave()
    this.#flow.start(outline.firstLead, outline.nextLead, look)
    this.#flow.push(text)
  }

  #drawRule(): void {
    this.#flow.endParagraph()
    this.#page.drawRule(this.#outline.firstLead)
  }

  #beginCode(text: string): void {
    this.#code = new Code({ page: this.#page, containers: [], end: 'indent' })
    this.#code.push(text)
  }

  #addBlank(): void {
    this.#flow.endParagraph()
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

  /** Returns the line where it has to be read once more, else ''; `undefined` where the next line is code. */
  #endKind(): string | undefined {
    if (this.#kind === 'code') return this.#code?.endLine()
    if (this.#kind === 'fence') return this.#endFence()
    if (this.#kind === 'text') this.#flow.end()
    if (this.#kind === 'bar') this.#tables.add(this.#keptLine, this.#outline.nextLead)
    return ''
  }

  #endFence(): string | undefined {
    const fence = readFence(this.#keptLine)
    if (!fence) {
      this.#begin({ kind: 'text', text: this.#keptLine })
      this.#flow.end()
      return ''
    }
    const { hasMarker, firstLead, containers } = this.#outline
    if (hasMarker) this.#page.printEmpty(firstLead)
    this.#flow.endParagraph()
    const highlight = this.#highlightFor(fence.language)
    this.#code = new Code({ page: this.#page, containers, end: fence.end, highlight })
    return undefined
  }
}
