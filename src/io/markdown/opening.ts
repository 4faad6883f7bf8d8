import { type LineStart, readLineStart } from './line-start.ts'
import type { Outline } from './outline.ts'
import { looks } from './paint.ts'

/** What a line turned out to be; each is called with what was read of it. */
export interface Found {
  /** Text, or with a look a heading. */
  text(text: string, look?: string): void
  rule(): void
  /** What has to be read to its end. */
  whole(kind: 'fence' | 'bar', text: string): void
  code(text: string): void
  /** A quote or an item begins; `rest` is what follows. */
  container(rest: string): void
  /** Whether a line that is indented goes on with a paragraph. */
  isInParagraph(): boolean
}

/** The beginning of a line: its blanks, marks and markers, up to where it is known what it is. */
export interface Opening {
  push(char: string): void
  /** The line ended here; returns whether it is blank, but for quotes and markers. */
  end(): boolean
  startLine(): void
}

export function createOpening(outline: Outline, found: Found): Opening {
  let head = ''
  let isKnown = false

  function startLine(): void {
    head = ''
    isKnown = false
    outline.startLine()
  }

  function push(char: string): void {
    if (head === '' && (char === ' ' || char === '\t')) outline.addBlank(char)
    else if (head !== '' || !(outline.enter(char) || startCode(char))) {
      head += char
      decide(false)
    }
  }

  function startCode(char: string): boolean {
    if (outline.indent < 4 || outline.containers.length > 0 || found.isInParagraph()) return false
    isKnown = true
    found.code(' '.repeat(Math.min(outline.indent, 100)) + char)
    return true
  }

  function decide(isLineEnd: boolean): void {
    const start = readLineStart(head, isLineEnd, outline.hasMarker)
    if (start.kind === 'more') return
    const isContainer = start.kind === 'quote' || start.kind === 'item'
    if (isContainer && outline.hasRoom) openContainer(start)
    else {
      isKnown = true
      tell(start)
    }
  }

  function openContainer(start: Extract<LineStart, { kind: 'quote' | 'item' }>): void {
    head = ''
    if (start.kind === 'quote') outline.openQuote()
    else outline.openItem(start.marker)
    found.container(start.kind === 'quote' ? '' : start.rest)
  }

  function tell(start: LineStart): void {
    // Text may go on with a paragraph that it is not inside of.
    const isText = start.kind === 'text' || (start.kind === 'bar' && outline.hasMarker)
    if (isText || start.kind === 'quote' || start.kind === 'item' || start.kind === 'more') {
      found.text(head)
      return
    }
    if (start.kind !== 'bar') outline.leave()
    if (start.kind === 'heading') {
      found.text(head.slice(start.level), looks.headings[start.level - 1] ?? looks.headings.at(-1))
    } else if (start.kind === 'task') {
      outline.tick(start.isDone)
      found.text(head.slice(4))
    } else if (start.kind === 'rule') found.rule()
    else found.whole(start.kind, head)
  }

  return {
    push,
    end() {
      while (!isKnown && head !== '') decide(true)
      return !isKnown
    },
    startLine,
  }
}
