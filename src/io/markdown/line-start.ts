import { countIndent, fencePattern, maxBlockLength, readOpeningFence } from './source.ts'

/** Quotes and list items below this level are not indented further, because each level narrows every line. */
export const maxLayoutDepth = 12

type LineKind = 'text' | 'fence' | 'heading' | 'rule' | 'quote' | 'row' | 'code'

export interface ListMarker {
  mark: string
  indent: number
  textIndent: number
}

export interface MarkdownLineStart {
  kind: LineKind
  indent: number
  markers: ListMarker[]
  text: string
}

interface LineContext {
  isWhole: boolean
  hasText: boolean
  isInList: boolean
  /** A line with at least this indentation is code or, if a paragraph is open, text of the paragraph. */
  codeIndent: number
}

/** Returns `undefined` if the kind of the line depends on text that has not arrived. */
export function parseMarkdownLineStart(line: string, context: LineContext): MarkdownLineStart | undefined {
  const { isWhole, hasText, isInList, codeIndent } = context
  const indent = countIndent(line)
  const isLong = line.length > maxBlockLength
  const isOpen = !isWhole && !isLong
  const isDeep = indent >= codeIndent
  const markers: ListMarker[] = []
  let text = line.trimStart()

  function start(found: LineKind): MarkdownLineStart | undefined {
    const isCode = isDeep && markers.length === 0 && found !== 'fence'
    const kind = isLong ? 'text' : isCode ? (hasText ? 'text' : 'code') : found
    return kind === 'code' && isOpen ? undefined : { kind, indent, markers, text }
  }

  if (isDeep && !isInList) return start('text')
  for (;;) {
    if (text === '') return isWhole ? start('text') : undefined
    const continuesText = hasText && markers.length === 0
    if (isOpen && mayBeRule.test(text)) return undefined
    if (isRule.test(text) || (continuesText && headingUnderlinePattern.test(text))) return start('rule')
    const at = markers.at(-1)?.textIndent ?? indent
    const item = readMarker(text, at)
    if (item === 'open' && isOpen) return undefined
    const isItem = typeof item === 'object' && markers.length < maxLayoutDepth
    if (!isItem || (continuesText && !canInterrupt(item, isInList))) {
      const kind = readKind(text, isOpen)
      return kind && start(kind)
    }
    const { mark, gap, rest } = item
    if (isOpen && rest === '') return undefined
    markers.push({ mark, indent: at, textIndent: at + mark.length + (rest === '' ? 1 : gap) })
    text = rest
  }
}

const headingUnderlinePattern = /^(?:={2,}|-{2,})[ \t]*$/
const mayBeRule = /^([-*_=])[ \t]*(?:\1[ \t]*)*$/
const isRule = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/

interface Item {
  mark: string
  gap: number
  rest: string
}

/** Returns `open` if the text may be the start of a marker that has not arrived completely. */
function readMarker(text: string, at: number): Item | 'open' | undefined {
  if (/^(?:[-*+]|\d{1,9}[.)]?)$/.test(text)) {
    return /^\d+$/.test(text) ? 'open' : { mark: text, gap: 1, rest: '' }
  }
  const [whole, mark = '', gap = ''] = /^([-*+]|\d{1,9}[.)])([ \t]+)/.exec(text) ?? []
  if (whole === undefined) return undefined
  return { mark, gap: countIndent(gap, at + mark.length), rest: text.slice(whole.length) }
}

const canInterrupt = ({ mark, rest }: Item, isInList: boolean): boolean =>
  isInList || (rest !== '' && (mark.length === 1 || /^1[.)]$/.test(mark)))

function readKind(text: string, isOpen: boolean): LineKind | undefined {
  switch (text[0]) {
    case '`':
    case '~':
      if (isOpen && (/^(?:`{1,2}|~{1,2})$/.test(text) || fencePattern.test(text))) return undefined
      if (readOpeningFence(text)) return 'fence'
      break
    case '#':
      if (isOpen && /^#{1,6}(?:$|[ \t])/.test(text)) return undefined
      if (/^#{1,6}(?:$|[ \t])/.test(text)) return 'heading'
      break
    case '>':
      return isOpen ? undefined : 'quote'
  }
  if (isOpen && firstWord.test(text)) return undefined
  if (rowStart.test(text)) return isOpen ? undefined : 'row'
  return 'text'
}

/**
 * Matches a line that has only one short word so far. A pipe may follow, which would make the line a row of a
 * table. Excludes Chinese and Japanese, which have no blanks between words: such a line is printed at once.
 */
const firstWord = /^[^\s|\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{0,16}[ \t]*$/u
const rowStart = /^[^\s|\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{0,16}[ \t]*\|/u

export const mayBeDelimiterRow = (line: string): boolean =>
  line.length <= maxBlockLength && /^[|:\- \t]*$/.test(line)
