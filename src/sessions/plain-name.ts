import { takeStart } from '../wire/text-start.ts'

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Text whose invisible characters, and those that move others, are escaped as in JSON. */
export const visible = (text: string): string =>
  text.replace(unseen, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** A name or an id from outside: as a JSON string if it has blanks or marks, so that it cannot look like parley's words. */
export const plainly = (text: string): string =>
  /^[\p{L}\p{N}_.:/@+-]+$/u.test(text) && visible(text) === text ? text : visible(JSON.stringify(text))

/** How much of a name is shown beside other words, in characters. */
const briefName = 60

/** The beginning of a name or an id, in at most so many columns. */
export const briefly = (text: string, columns = Infinity): string =>
  cut(plainly(text.length > briefName ? `${takeStart(text, briefName)}…` : text), columns)

/** At most so many: a character beyond ASCII may be two wide. Rather a row too short than one that the terminal wraps. */
export const columnsOf = (text: string): number =>
  [...text].reduce((sum, char) => sum + (char < '\x7f' ? 1 : 2), 0)

/** The beginning of a text, in at most so many columns. */
export function cut(text: string, columns: number): string {
  if (columnsOf(text) <= columns) return text
  let shown = ''
  let left = columns - columnsOf('…')
  for (const char of text) {
    left -= columnsOf(char)
    if (left < 0) break
    shown += char
  }
  return `${shown}…`
}
