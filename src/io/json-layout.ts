import { listJsonTokens } from '../wire/json/scanner.ts'
import { escapeControlsInJson } from './escape.ts'

/**
 * Yields the lines of indented JSON. Numbers, key order and duplicate keys stay unchanged. Strings lose
 * unneeded escapes, and their control characters are escaped. `json` must be valid. The caller must limit its
 * depth, because the indentation of deep JSON would be very long.
 */
export function* formatJsonLines(json: string): Generator<string> {
  let line = ''
  let depth = 0
  let before = ''
  for (const token of listJsonTokens(json)) {
    const isEnd = token === '}' || token === ']'
    const isOpened = before === '{' || before === '['
    if (isEnd) depth--
    if (isEnd ? !isOpened : isOpened || before === ',') {
      yield line
      line = '  '.repeat(depth)
    }
    if (token === '{' || token === '[') depth++
    line += formatToken(token)
    before = token
  }
  yield line
}

function formatToken(token: string): string {
  if (token.startsWith('"')) return escapeControlsInJson(JSON.stringify(JSON.parse(token)))
  return token === ':' ? ': ' : token
}
