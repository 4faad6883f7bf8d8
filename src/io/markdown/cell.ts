import { Inline } from './inline.ts'
import { looks, type Measure, type Span } from './paint.ts'
import { cutLines } from './ticks.ts'
import { Words } from './words.ts'

/** Visible characters: one may be several of Unicode's. */
const characters = new Intl.Segmenter()

/** One line of a cell. */
export interface CellLine {
  spans: Span[]
  width: number
}

interface Word extends CellLine {
  /** Whether it begins a line: the first word, and each one after `<br>`. */
  isFirst: boolean
  isSpaced: boolean
}

/** The words of a table's cell. */
export function wordsOf(cell: string, measure: Measure, isHead: boolean): Word[] {
  const inline = new Inline(isHead ? looks.bold : '')
  const found: Word[] = []
  let isFirst = true
  const words = new Words((word, isSpaced) => {
    const spans = inline.read(word, isSpaced && !isFirst)
    found.push({ spans, width: measure(spans), isFirst, isSpaced: isSpaced && !isFirst })
    isFirst = false
  })
  for (const line of cutLines(cell)) {
    inline.startLine()
    words.push(line.trim())
    words.end()
    isFirst = true
  }
  return found
}

/** How wide a cell is if nothing is wrapped. */
export function widthOf(words: Word[]): number {
  let widest = 0
  let width = 0
  for (const word of words) {
    width = (word.isFirst ? 0 : width) + word.width
    widest = Math.max(widest, width)
  }
  return widest
}

/** Wraps a cell's words into lines of at most this width; a word that is wider is cut. */
export function fold(words: Word[], width: number, measure: Measure): CellLine[] {
  const lines: CellLine[] = []
  let line: CellLine = { spans: [], width: 0 }
  const begin = () => {
    line = { spans: [], width: 0 }
    lines.push(line)
  }
  const add = (spans: Span[], taken: number) => {
    line.spans.push(...spans)
    line.width += taken
  }
  begin()
  for (const [at, word] of words.entries()) {
    if (word.isFirst && at > 0) begin()
    if (line.width + word.width <= width) {
      add(word.spans, word.width)
      continue
    }
    if (line.width > 0) begin()
    const spans = word.isSpaced ? word.spans.slice(1) : word.spans
    for (const { text, look } of spans) {
      for (const { segment } of characters.segment(text)) {
        const piece = [{ text: segment, look }]
        const taken = measure(piece)
        if (line.width > 0 && line.width + taken > width) begin()
        add(piece, taken)
      }
    }
  }
  return lines
}
