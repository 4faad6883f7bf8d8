import { measureColumns } from './width.ts'

/** `sgr` has the numbers of a terminal's style code (SGR), such as `1;35`. For plain text, `sgr` is empty. */
export interface Span {
  text: string
  sgr: string
}

export type StyledLine = readonly Span[]

/**
 * Style codes that use only the 16 colours of the terminal's theme, so text stays readable on any
 * background.
 */
export const spanStyles = {
  headings: ['1;4;35', '1;35', '1'],
  bold: '1',
  italic: '3',
  strike: '9',
  code: '36',
  address: '2;4',
  frame: '2',
  marker: '36',
} as const

export const getLineText = (line: StyledLine): string => line.map(({ text }) => text).join('')

/** Resets the style after each span, so that the text can be cut anywhere. */
export function colourLine(line: StyledLine, isColoured: boolean): string {
  if (!isColoured) return getLineText(line)
  let painted = ''
  for (let at = 0; at < line.length; ) {
    const { sgr } = line[at] as Span
    let text = ''
    while (line[at]?.sgr === sgr) text += line[at++]?.text
    painted += sgr === '' || text === '' ? text : `\x1b[${sgr}m${text}\x1b[0m`
  }
  return painted
}

export const measureLineWidth = (line: StyledLine): number => measureColumns(getLineText(line))

/**
 * Matches blanks, or a text that must stay on one line: a word, or a Chinese or Japanese character with the
 * punctuation after it. Chinese and Japanese have no blanks between words.
 */
const unit =
  /[ \t]+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}][\p{M}\p{P}ー々]*|[^ \t\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+/gu

/** A word that is wider than a line stays whole. */
export function wrapLine(line: StyledLine, columns: number): StyledLine[] {
  if (measureLineWidth(line) <= columns) return [line]
  const rows: StyledLine[] = []
  let row: Span[] = []
  for (const { blanks, word } of splitWords(line)) {
    const longer = [...row, ...blanks, ...word]
    const isFull = row.length > 0 && measureLineWidth(longer) > columns
    if (isFull) rows.push(row)
    row = isFull ? word : longer
  }
  return [...rows, row]
}

export function splitWords(line: StyledLine) {
  const words: { blanks: Span[]; word: Span[] }[] = []
  let blanks: Span[] = []
  let word: Span[] = []
  const endWord = () => {
    if (word.length === 0) return
    words.push({ blanks, word })
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
  return words
}

export const cjkCharacterSource = '[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}]'

const ideographPattern = new RegExp(`^${cjkCharacterSource}`, 'u')

export const canBreakBetween = (before: string | undefined, text: string): boolean =>
  before !== undefined &&
  (ideographPattern.test(text) || (ideographPattern.test(before) && /^[\p{L}\p{N}]/u.test(text)))
