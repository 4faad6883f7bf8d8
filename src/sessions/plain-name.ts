import { takeStart } from '../wire/text-start.ts'

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Escapes invisible characters and bidi controls as JSON does. */
export const escapeInvisible = (text: string): string =>
  text.replace(unseen, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/**
 * Formats a remote name or id. A name with blanks or punctuation becomes a JSON string, so nobody can take it
 * for parley's words.
 */
export const formatName = (text: string): string =>
  /^[\p{L}\p{N}_.:/@+-]+$/u.test(text) && escapeInvisible(text) === text
    ? text
    : escapeInvisible(JSON.stringify(text))

/** Maximum length of a name next to other words, in characters. */
const maxNameLength = 60

/** Returns the start of a name or id, in at most `columns` columns. */
export const formatBriefName = (text: string, columns = Infinity): string =>
  truncateToColumns(
    formatName(text.length > maxNameLength ? `${takeStart(text, maxNameLength)}…` : text),
    columns,
  )

/**
 * Returns an upper bound of a text's width: characters beyond ASCII count as two columns. A row that is too
 * short is better than a wrapped row.
 */
export const estimateColumns = (text: string): number =>
  [...text].reduce((sum, char) => sum + (char < '\x7f' ? 1 : 2), 0)

/** Returns the start of a text, in at most `columns` columns. */
function truncateToColumns(text: string, columns: number): string {
  if (estimateColumns(text) <= columns) return text
  let shown = ''
  let left = columns - estimateColumns('…')
  for (const char of text) {
    left -= estimateColumns(char)
    if (left < 0) break
    shown += char
  }
  return `${shown}…`
}
