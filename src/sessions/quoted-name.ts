import { getTextStart } from '../wire/text-start.ts'

const invisible = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/**
 * Escapes invisible characters and bidi controls as JSON does, such as `\u200b`, because they could hide or
 * reorder text.
 */
export const escapeInvisibleCharacters = (text: string): string =>
  text.replace(invisible, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/**
 * Returns a name with blanks or unusual punctuation as a JSON string, and any other name unchanged. Without
 * quotes, a name of several words could look like a part of parley's message.
 */
export const quoteUnusualName = (text: string): string =>
  /^[\p{L}\p{N}_.:/@+-]+$/u.test(text) && escapeInvisibleCharacters(text) === text
    ? text
    : escapeInvisibleCharacters(JSON.stringify(text))

const maxNameLength = 60

export const quoteAndShortenName = (text: string, columns = Infinity): string =>
  truncateToColumns(
    quoteUnusualName(text.length > maxNameLength ? `${getTextStart(text, maxNameLength)}…` : text),
    columns,
  )

/**
 * Returns an upper bound of a text's width in columns. Counts each character outside of ASCII as two columns,
 * because cutting a row too early is better than wrapping it.
 */
export const estimateColumns = (text: string): number =>
  [...text].reduce((sum, char) => sum + (char < '\x7f' ? 1 : 2), 0)

function truncateToColumns(text: string, columns: number): string {
  if (estimateColumns(text) <= columns) return text
  const chars = [...text]
  while (chars.length > 0 && estimateColumns(`${chars.join('')}…`) > columns) chars.pop()
  return `${chars.join('')}…`
}
