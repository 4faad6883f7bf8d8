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

export interface Word extends CellLine {
  /** Whether it begins a line: the first word, and each one after `<br>`. */
  isFirst: boolean
  isSpaced: boolean
}

/** The words of a table's cell. All of it is known, so no mark that has a partner is shown. */
export function wordsOf(cell: string, measure: Measure, isHead: boolean): Word[] {
  const inline = new Inline(isHead ? looks.bold : '')
  const found: Word[] = []
  for (const line of cutLines(cell)) {
    inline.startLine()
    let isFirst = true
    for (const word of cutWords(inline.read(line.trim(), false))) {
      const isSpaced = word.isSpaced && !isFirst
      const spans = word.isSpaced && isFirst ? word.spans.slice(1) : word.spans
      found.push({ spans, width: measure(spans), isFirst, isSpaced })
      isFirst = false
    }
  }
  return found
}

/** Cuts text that has its looks already. The blank before a word is a span of its own. */
function cutWords(line: readonly Span[]): Pick<Word, 'spans' | 'isSpaced'>[] {
  const found: Pick<Word, 'spans' | 'isSpaced'>[] = []
  let at = 0
  let from = 0
  const take = (size: number) => {
    const taken: Span[] = []
    for (let left = size; left > 0; ) {
      const { text, look } = line[at] as Span
      const piece = text.slice(from, from + left)
      taken.push({ text: piece, look })
      left -= piece.length
      from += piece.length
      if (from < text.length) break
      at++
      from = 0
    }
    return taken
  }
  const words = new Words((word, isSpaced) => {
    let blank: Span[] = []
    while (/[ \t]/.test(line[at]?.text[from] ?? '')) blank = take(1)
    found.push({ spans: [...blank.map(({ look }) => ({ text: ' ', look })), ...take(word.length)], isSpaced })
  })
  words.push(line.map(({ text }) => text).join(''))
  words.end()
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
