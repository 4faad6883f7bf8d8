import { measureColumns } from './width.ts'

/** A piece of text and how it looks: the parameters of a terminal's SGR sequence, '' if it is plain. */
export interface Span {
  text: string
  sgr: string
  /** Where it leads, if the terminal shows links of its own. */
  target?: string
}

/** Without line breaks. */
export type StyledLine = readonly Span[]

/** How each thing looks. Only the 16 colours, which every terminal shows in its own theme. */
export const styles = {
  /** By level; deeper ones sgr like the last. */
  headings: ['1;4;35', '1;35', '1'],
  bold: '1',
  italic: '3',
  strike: '9',
  code: '36',
  address: '2;4',
  frame: '2',
  marker: '36',
} as const

export const getText = (line: StyledLine): string => line.map(({ text }) => text).join('')

/** Spans as text. Each ends plain and without a link, so that nothing is left on wherever the text stops. */
export function paint(line: StyledLine, isColoured: boolean): string {
  if (!isColoured) return getText(line)
  let painted = ''
  for (let at = 0; at < line.length; ) {
    const { sgr, target } = line[at] as Span
    let text = ''
    while (line[at]?.sgr === sgr && line[at]?.target === target) text += line[at++]?.text
    const shown = sgr === '' || text === '' ? text : `\x1b[${sgr}m${text}\x1b[0m`
    painted += target === undefined ? shown : `\x1b]8;;${target}\x1b\\${shown}\x1b]8;;\x1b\\`
  }
  return painted
}

/** How many columns something takes. Most texts are ASCII, which needs no slow sgr. */
export function measureWidth(line: StyledLine): number {
  const text = getText(line)
  return /^[\x20-\x7e]*$/.test(text) ? text.length : measureColumns(text)
}

/**
 * Blanks, or a text that stays on one line: a word, or a Chinese or Japanese character with the punctuation after it. Those
 * languages have no blanks between words.
 */
const unit =
  /[ \t]+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}][\p{M}\p{P}ー々]*|[^ \t\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu

/** Breaks a line between words. A word that is wider than a line is not broken. */
export function wrapLine(line: StyledLine, columns: number): StyledLine[] {
  if (measureWidth(line) <= columns) return [line]
  const rows: StyledLine[] = []
  let row: Span[] = []
  let blanks: Span[] = []
  let word: Span[] = []
  const endWord = () => {
    if (word.length === 0) return
    const longer = [...row, ...blanks, ...word]
    const isFull = row.length > 0 && measureWidth(longer) > columns
    if (isFull) rows.push(row)
    row = isFull ? word : longer
    blanks = []
    word = []
  }
  for (const span of line) {
    for (const [text] of span.text.matchAll(unit)) {
      const isBlank = text.trim() === ''
      const before = word.at(-1)
      // A word may consist of several spans: **bold**ly.
      if (isBlank || canBreakBetween(before?.text, text)) endWord()
      const piece = { ...span, text }
      if (isBlank) blanks.push(piece)
      else word.push(piece)
    }
  }
  endWord()
  return [...rows, row]
}

const ideograph = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u

/** Whether a line may end between two pieces that no blank parts. */
const canBreakBetween = (before: string | undefined, text: string): boolean =>
  before !== undefined && (ideograph.test(text) || (ideograph.test(before) && /^[\p{L}\p{N}]/u.test(text)))
