import type { Canvas } from './canvas.ts'
import { looks, type Span } from './canvas.ts'
import type { Highlight } from './highlighter.ts'
import { type Container, leadOf, strip } from './nesting.ts'

/** How a block of code ends: at a fence like its own, or with its indent. */
export type CodeEnd = { char: string; count: number } | 'indent'

interface CodeOptions {
  page: Canvas
  containers: readonly Container[]
  end: CodeEnd
  highlight?: Highlight
}

/** The most of a line that is kept back, in characters; a longer one is printed in pieces and not coloured. */
const longestLine = 500
const indent: Span = { text: '  ', look: '' }

/** A block of code: each line as it is, not wrapped. */
export class Code {
  readonly #page: Canvas
  readonly #containers: readonly Container[]
  readonly #lead: readonly Span[]
  readonly #end: CodeEnd
  readonly #highlight: Highlight | undefined
  #line = ''
  /** Whether the line's beginning is printed already. */
  #isLong = false
  /** Blank lines that are printed with what comes after them, if that is code. */
  #blanks = 0

  constructor({ page, containers, end, highlight }: CodeOptions) {
    this.#page = page
    this.#containers = containers
    this.#lead = leadOf(containers)
    this.#end = end
    this.#highlight = highlight
  }

  push(text: string): void {
    for (let at = 0; at < text.length; ) {
      const room = longestLine - this.#line.length
      // Both halves of a character.
      const size = /[\ud800-\udbff]/.test(text[at + room - 1] ?? '') ? room + 1 : room
      this.#line += text.slice(at, at + size)
      at += size
      if (this.#line.length >= longestLine) this.#printPiece()
    }
  }

  /** Returns `undefined` while the block goes on; else the line, which is not code, or '' if it was the end. */
  endLine(): string | undefined {
    const line = this.#line
    this.#line = ''
    if (!this.#isLong) return this.#takeLine(line)
    this.#page.write([{ text: line, look: looks.code }])
    this.#page.endLine()
    this.#isLong = false
    return undefined
  }

  #printPiece(): void {
    const text = this.#isLong ? this.#line : (strip(this.#line, this.#containers) ?? this.#line)
    if (!this.#isLong) this.#startLine()
    this.#page.write([{ text, look: looks.code }])
    this.#isLong = true
    this.#line = ''
  }

  #takeLine(line: string): string | undefined {
    const text = strip(line, this.#containers)
    if (text !== undefined && this.#end !== 'indent') {
      if (isFence(text, this.#end)) return ''
      this.#printLine(text)
    } else if (text !== undefined && (text.trim() === '' || text.startsWith('    '))) {
      this.#printLine(text.slice(4))
    } else {
      if (this.#blanks > 0) this.#page.skip(this.#lead)
      return line
    }
    return undefined
  }

  #printLine(text: string): void {
    if (text.trim() === '') {
      this.#blanks++
      return
    }
    this.#startLine()
    this.#page.write(this.#highlight?.(text) ?? [{ text, look: looks.code }])
    this.#page.endLine()
  }

  #startLine(): void {
    for (; this.#blanks > 0; this.#blanks--) this.#page.printEmpty(this.#lead)
    this.#page.startLine([...this.#lead, indent])
  }
}

function isFence(line: string, { char, count }: Exclude<CodeEnd, string>): boolean {
  const text = line.trim()
  return text.length >= count && text === char.repeat(text.length)
}

/** What opens a block, such as three backticks and a language; `undefined` if the line is text after all. */
export function readFence(line: string): { end: CodeEnd; language: string } | undefined {
  const char = line[0] as string
  let count = 0
  while (line[count] === char) count++
  const info = line.slice(count).trim()
  if (char === '`' && info.includes('`')) return undefined
  return { end: { char, count }, language: info.split(/[\s{,]/, 1)[0] as string }
}
