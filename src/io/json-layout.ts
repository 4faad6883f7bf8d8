import { tryParseJson } from '../wire/json/parse.ts'
import { endOfValue, isDeeperThan, skipBlanks } from '../wire/json/scanner.ts'
import { escapeJson } from './escape.ts'
import type { Span } from './spans.ts'

/** How the parts of JSON look. */
const looks = { key: '1', text: '32', other: '36' } as const

/**
 * Lays out JSON text for a person: each value on a line of its own, indented. Numbers, the order of keys and a key that is
 * there twice stay as they are spelled. A text loses escapes that it does not need, and its control characters are escaped.
 * The text is one that `JSON.parse` accepts. Its depth should be bounded, for a line is as long as it is deep.
 */
export function* formatJsonLines(json: string): Generator<Span[]> {
  let line: Span[] = []
  let depth = 0
  let before = ''
  for (let place = skipBlanks(json, 0); place < json.length; ) {
    const mark = json.charAt(place)
    const isEnd = mark === '}' || mark === ']'
    const isOpened = before === '{' || before === '['
    if (isEnd) depth--
    if (isEnd ? !isOpened : isOpened || before === ',') {
      yield line
      line = depth > 0 ? [{ text: '  '.repeat(depth), sgr: '' }] : []
    }
    if (mark === '{' || mark === '[') depth++
    const end = ',:{}[]'.includes(mark) ? place + 1 : endOfValue(json, place)
    line.push(spanOf(json, place, end))
    before = mark
    place = skipBlanks(json, end)
  }
  yield line
}

function spanOf(json: string, start: number, end: number): Span {
  const text = json.slice(start, end)
  if (',:{}[]'.includes(text)) return { text: text === ':' ? ': ' : text, sgr: '' }
  if (!text.startsWith('"')) return { text, sgr: looks.other }
  const isKey = json[skipBlanks(json, end)] === ':'
  return { text: escapeJson(JSON.stringify(JSON.parse(text))), sgr: isKey ? looks.key : looks.text }
}

/** A line is as long as it is deep. */
const maxDepth = 100

/** Of what is laid out, in characters: indentation may be many times as long as what is indented. */
const maxFormattedLength = 2 ** 24

/** JSON laid out whole; `undefined` if the text is not JSON, is nested too deep, or would become too long. */
export function formatJson(text: string, paint: (line: readonly Span[]) => string): string | undefined {
  if (tryParseJson(text) === undefined || isDeeperThan(text, maxDepth)) return undefined
  let page = ''
  for (const line of formatJsonLines(text)) {
    page += `${paint(line)}\n`
    if (page.length > maxFormattedLength) return undefined
  }
  return page
}
