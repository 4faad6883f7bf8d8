import stringWidth from 'string-width'
import { toOneLine } from './escape.ts'

const styleCode = /\x1b\[[\d;]*m/g

export const measureColumns = (text: string): number =>
  stringWidth(text.replace(styleCode, ''), { countAnsiEscapeCodes: true })

const characters = new Intl.Segmenter()

/** Shortens remote text to one line, and keeps combined characters whole. */
export function clipToColumns(text: string, width: number): string {
  const maxLength = width * 4
  const line = toOneLine(text, maxLength).replace(/\p{Cs}/gu, '\ufffd')
  // `toOneLine` reads at most four times `maxLength`, so a longer text always gets an ellipsis.
  const isWhole = text.length <= maxLength * 4
  if (isWhole && measureColumns(line) <= width) return line
  let shown = ''
  let room = width - 1
  for (const { segment } of characters.segment(line)) {
    room -= measureColumns(segment)
    if (room < 0) break
    shown += segment
  }
  return `${shown.trimEnd()}…`
}

export const padToColumns = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - measureColumns(text)))
