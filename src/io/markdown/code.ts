import { type Container, leadOf, strip } from './containers.ts'
import type { Highlight } from './highlighter.ts'
import type { Page } from './page.ts'
import { looks, type Span } from './paint.ts'

/** How a block of code ends: at a fence like its own, or where the indent is over. */
export type CodeEnd = { char: string; count: number } | 'indent'

export interface Code {
  push(text: string): void
  /** Returns the line that is no code any more; '' where it only ended it. */
  endLine(): string | undefined
}

export interface CodeOptions {
  page: Page
  containers: readonly Container[]
  end: CodeEnd
  highlight: Highlight | undefined
}

/** The most of a line that is kept back, in characters; a longer one is printed in pieces and not coloured. */
const longestLine = 500
const indent: Span = { text: '  ', look: '' }

/** A block of code: each line as it is, neither wrapped nor read. */
export function createCode({ page, containers, end, highlight }: CodeOptions): Code {
  const lead = leadOf(containers)
  let line = ''
  let isLong = false
  let blanks = 0

  function printPiece(): void {
    const text = isLong ? line : (strip(line, containers) ?? line)
    if (!isLong) startLine()
    page.write([{ text, look: looks.code }])
    isLong = true
    line = ''
  }

  /** Blank lines are printed with what comes after them. */
  function startLine(): void {
    for (; blanks > 0; blanks--) page.printEmpty(lead)
    page.startLine([...lead, indent])
  }

  function printLine(text: string): void {
    if (text.trim() === '') {
      blanks++
      return
    }
    startLine()
    page.write(highlight?.(text) ?? [{ text, look: looks.code }])
    page.endLine()
  }

  function takeLine(whole: string): string | undefined {
    const text = strip(whole, containers)
    const isFenced = end !== 'indent'
    if (text !== undefined && isFenced && isFence(text, end)) return ''
    const isOver = !isFenced && text?.trim() !== '' && !text?.startsWith('    ')
    if (text === undefined || isOver) {
      if (blanks > 0) page.skip(lead)
      return whole
    }
    printLine(isFenced ? text : text.slice(4))
    return undefined
  }

  return {
    push(text) {
      for (let at = 0; at < text.length; ) {
        const room = longestLine - line.length
        const last = at + room - 1
        // Both halves of a character.
        const size = /[\ud800-\udbff]/.test(text[last] ?? '') ? room + 1 : room
        line += text.slice(at, at + size)
        at += size
        if (line.length >= longestLine) printPiece()
      }
    },
    endLine() {
      const whole = line
      line = ''
      if (!isLong) return takeLine(whole)
      page.write([{ text: whole, look: looks.code }])
      page.endLine()
      isLong = false
      return undefined
    },
  }
}

function isFence(line: string, { char, count }: Exclude<CodeEnd, string>): boolean {
  const text = line.trim()
  return text.length >= count && text === char.repeat(text.length)
}

/** What opens a block, such as three backticks and a language; `undefined` where the line is text after all. */
export function readFence(line: string): { end: CodeEnd; language: string } | undefined {
  const char = line[0] as string
  let count = 0
  while (line[count] === char) count++
  const info = line.slice(count).trim()
  if (char === '`' && info.includes('`')) return undefined
  return { end: { char, count }, language: info.split(/[\s{,]/, 1)[0] as string }
}
