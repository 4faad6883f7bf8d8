import { usage } from '../../errors.ts'
import type { PendingUse } from './pending.ts'

/** In characters. */
const longest = 2 ** 20

const deepest = 100

/**
 * All that is known of a tool use, for a person who is to allow it: nothing is cut or hidden, and every line begins
 * with a mark, also where a terminal of `columns` would have wrapped it, so that no text can look like parley's own.
 * Throws a usage error for what is too long or too deep for that.
 */
export function describeUse({ id, name, server, input }: PendingUse, columns: number): string {
  const lines = [
    `id: ${visible(id)}`,
    ...(server === undefined ? [] : [`MCP server: ${visible(server)}`]),
    ...(name === undefined ? ['nothing more is known of it'] : [`tool: ${visible(name)}`]),
    ...(input === undefined ? [] : showJson(input)),
  ]
  if (lines.reduce((sum, line) => sum + line.length, 0) > longest) throw unshown('longer than 1 MiB')
  const width = Math.max(columns - mark.length - 1, 20)
  return lines.flatMap((line) => wrap(line, width)).join('')
}

const mark = '  | '

/** Indented, and where a text has a new line there is one here too, after its `\n`. */
function showJson(input: unknown): string[] {
  if (isDeeper(input, deepest)) throw unshown(`nested more than ${deepest} deep`)
  return JSON.stringify(input, null, 2)
    .split('\n')
    .flatMap((line) => {
      const indent = ' '.repeat(line.search(/\S/) + 4)
      const broken = line.replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `\\n\n${indent}` : found))
      return broken.split('\n').map(visible)
    })
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1))
}

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** What is not seen, or moves what is, as JSON escapes it. */
export const visible = (text: string): string =>
  text.replace(unseen, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** A character beyond ASCII may be two columns wide: rather a line too short than one that the terminal wraps. */
function wrap(line: string, width: number): string[] {
  const rows: string[] = []
  let row = ''
  let room = width
  for (const char of line) {
    room -= char < '\x7f' ? 1 : 2
    if (room < 0) {
      rows.push(row)
      row = ''
      room = width - (char < '\x7f' ? 1 : 2)
    }
    row += char
  }
  return [...rows, row].map((each) => `${mark}${each}\n`)
}

const unshown = (why: string) =>
  usage(
    `a tool use that waits is ${why}, and can't be shown whole: look at it with 'parley events list --raw', then answer by its id with --allow or --deny`,
  )
