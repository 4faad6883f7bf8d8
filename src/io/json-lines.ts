import { tryParseJson } from '../wire/json/parse.ts'
import { endOfValue, isDeeperThan, skipBlanks } from '../wire/json/scanner.ts'
import { escapeJson } from './escape.ts'
import type { Span } from './spans.ts'

/** How the parts of JSON look. */
const looks = { key: '1', text: '32', other: '36' } as const

/**
 * Lays out JSON text for a person: each value on a line of its own, indented. `take` is called with each line; if it
 * returns true, that is the last one. Numbers, the order of keys and a key that is there twice stay as they are spelled.
 * A text loses escapes that it does not need, and its control characters are escaped. The text is one that `JSON.parse`
 * accepts. Its depth should be bounded, for a line is as long as it is deep.
 */
export function layOutJson(json: string, take: (line: Span[]) => unknown): void {
  let line: Span[] = []
  let depth = 0
  let isOver = false
  /** An object or a list was opened, and nothing in it has come. */
  let isOpened = false

  const put = (text: string, look = '') => line.push({ text, look })
  function breakLine(): void {
    isOver = take(line) === true
    line = []
    if (depth > 0) put('  '.repeat(depth))
  }
  function putValue(start: number): number {
    const end = endOfValue(json, start)
    const value = json.slice(start, end)
    if (!value.startsWith('"')) put(value, looks.other)
    else {
      const isKey = json[skipBlanks(json, end)] === ':'
      put(escapeJson(JSON.stringify(JSON.parse(value))), isKey ? looks.key : looks.text)
    }
    return end
  }

  let place = skipBlanks(json, 0)
  while (place < json.length && !isOver) {
    const mark = json.charAt(place)
    let end = place + 1
    if (mark === ',') {
      put(mark)
      breakLine()
    } else if (mark === ':') put(': ')
    else if (mark === '}' || mark === ']') {
      depth--
      if (!isOpened) breakLine()
      isOpened = false
      put(mark)
    } else {
      if (isOpened) breakLine()
      isOpened = mark === '{' || mark === '['
      if (isOpened) {
        put(mark)
        depth++
      } else end = putValue(place)
    }
    place = skipBlanks(json, end)
  }
  if (!isOver) take(line)
}

/** A line is as long as it is deep. */
const deepest = 100

/** Of what is laid out, in characters: indentation may be many times as long as what is indented. */
const longestPage = 2 ** 24

/** JSON laid out whole; `undefined` if the text is not JSON, is nested too deep, or would become too long. */
export function layOutPage(text: string, paint: (line: readonly Span[]) => string): string | undefined {
  if (tryParseJson(text) === undefined || isDeeperThan(text, deepest)) return undefined
  let page = ''
  layOutJson(text, (line) => {
    page += `${paint(line)}\n`
    return page.length > longestPage
  })
  return page.length > longestPage ? undefined : page
}
