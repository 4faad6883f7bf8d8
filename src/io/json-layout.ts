import { tryParseJson } from '../wire/json/parse.ts'
import { findEndOfValue, isDeeperThan, skipBlanks } from '../wire/json/scanner.ts'
import { escapeJson } from './escape.ts'
import type { Span } from './spans.ts'

/** SGR parameters of the parts of JSON. */
const styles = { key: '1', text: '32', other: '36' } as const

/**
 * Formats JSON text for a person, one value per line, indented. Numbers, key order and duplicate keys stay
 * unchanged. Strings lose unneeded escapes, and their control characters are escaped. `json` must be valid,
 * and the caller must bound its depth, because the indentation grows with the depth.
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
    const end = ',:{}[]'.includes(mark) ? place + 1 : findEndOfValue(json, place)
    line.push(toSpan(json, place, end))
    before = mark
    place = skipBlanks(json, end)
  }
  yield line
}

function toSpan(json: string, start: number, end: number): Span {
  const text = json.slice(start, end)
  if (',:{}[]'.includes(text)) return { text: text === ':' ? ': ' : text, sgr: '' }
  if (!text.startsWith('"')) return { text, sgr: styles.other }
  const isKey = json[skipBlanks(json, end)] === ':'
  return { text: escapeJson(JSON.stringify(JSON.parse(text))), sgr: isKey ? styles.key : styles.text }
}

const maxDepth = 100

/** Maximum length of formatted JSON, in characters. Indentation can be many times longer than the JSON. */
const maxFormattedLength = 2 ** 24

/**
 * Returns formatted JSON, or `undefined` if the text is not JSON, nested too deep, or too long when
 * formatted.
 */
export function formatJson(text: string, paint: (line: readonly Span[]) => string): string | undefined {
  if (tryParseJson(text) === undefined || isDeeperThan(text, maxDepth)) return undefined
  let page = ''
  for (const line of formatJsonLines(text)) {
    page += `${paint(line)}\n`
    if (page.length > maxFormattedLength) return undefined
  }
  return page
}
