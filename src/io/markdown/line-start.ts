import { countIndent, maxBlockLength, readOpeningFence } from './source.ts'

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
  hasText: boolean
  isInList: boolean
  /** A line with at least this indentation is code or, if a paragraph is open, text of the paragraph. */
  codeIndent: number
}

export function parseMarkdownLineStart(
  line: string,
  { hasText, isInList, codeIndent }: LineContext,
): MarkdownLineStart {
  const indent = countIndent(line)
  const isDeep = indent >= codeIndent
  const markers: ListMarker[] = []
  let text = line.trimStart()

  function start(found: LineKind): MarkdownLineStart {
    const isCode = isDeep && markers.length === 0 && found !== 'fence'
    const kind = line.length > maxBlockLength ? 'text' : isCode ? (hasText ? 'text' : 'code') : found
    return { kind, indent, markers, text }
  }

  if (isDeep && !isInList) return start('text')
  for (;;) {
    const continuesText = hasText && markers.length === 0
    if (isRule.test(text) || (continuesText && headingUnderlinePattern.test(text))) return start('rule')
    const item = markers.length < maxLayoutDepth && readItem(text, markers.at(-1)?.textIndent ?? indent)
    if (!item || (continuesText && !canInterrupt(item, isInList))) return start(readKind(text))
    const { rest, ...marker } = item
    markers.push(marker)
    text = rest
  }
}

const headingUnderlinePattern = /^(?:={2,}|-{2,})[ \t]*$/
const isRule = /^([-*_])[ \t]*(?:\1[ \t]*){2,}$/

interface Item extends ListMarker {
  rest: string
}

function readItem(text: string, indent: number): Item | undefined {
  const [whole = '', mark] = /^([-*+]|\d{1,9}[.)])(?:[ \t]+|$)/.exec(text) ?? []
  if (mark === undefined) return undefined
  const rest = text.slice(whole.length)
  const end = indent + mark.length
  const gap = rest === '' ? 1 : countIndent(whole.slice(mark.length), end)
  return { mark, indent, textIndent: end + gap, rest }
}

const canInterrupt = ({ mark, rest }: Item, isInList: boolean): boolean =>
  isInList || (rest !== '' && (mark.length === 1 || /^1[.)]$/.test(mark)))

function readKind(text: string): LineKind {
  if (readOpeningFence(text)) return 'fence'
  if (/^#{1,6}(?:$|[ \t])/.test(text)) return 'heading'
  if (text.startsWith('>')) return 'quote'
  return rowStart.test(text) ? 'row' : 'text'
}

/**
 * Matches a row of a table: a pipe, or a short word and a pipe. The word must not be Chinese or Japanese.
 * These have no blanks between words, so every line would wait for a possible pipe.
 */
const rowStart = /^[^\s|\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{0,16}[ \t]*\|/u

/**
 * Matches the received part of a line if later text may decide the kind of the line. After any list markers,
 * the part is empty, a possible rule, fence, heading or quote, or only one short word before a possible pipe.
 * The pattern accepts at most `maxLayoutDepth` markers. Without this limit, its time would be quadratic.
 */
const openStart =
  /^\s*(?!\s)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+(?![ \t])){0,12}(?:([-*_=])[ \t]*(?:\1[ \t]*)*$|`{3}|~{3}|#{1,6}[ \t]|>|[^\s|\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]{0,16}[ \t]*(?:$|\|))/u

/**
 * Returns true if later text cannot change the kind of an unfinished line. A line of code is an exception:
 * over `maxBlockLength` characters, it becomes text.
 */
export const isKindFinal = (line: string): boolean => line.length > maxBlockLength || !openStart.test(line)

export const mayBeDelimiterRow = (line: string): boolean =>
  line.length <= maxBlockLength && /^[|:\- \t]*$/.test(line)
