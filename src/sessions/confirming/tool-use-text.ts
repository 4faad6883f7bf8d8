import { usage } from '../../errors.ts'
import { childrenOf, isDeeperThan, skipBlanks } from '../../wire/json/scanner.ts'
import type { PendingUse } from './pending.ts'

/** In characters. */
const longest = 2 ** 20

const deepest = 100

/**
 * All that is known about a tool use, for a person who decides on it. Nothing is cut or hidden, not even a key that is
 * there twice. Every line begins with a mark, also where a terminal of `columns` would have wrapped it, so that no text
 * can look like parley's own. Throws a usage error for what is too long or too deep for that.
 */
export function showWholeToolUse({ id, text }: PendingUse, columns: number): string {
  const lines = [
    `id: ${visible(id)}`,
    ...(text === undefined ? ['nothing more is known about it'] : describeEvent(text)),
  ]
  if (sumOf(lines) > longest) throw tooLong()
  const width = Math.max(columns - mark.length - 1, 20)
  return lines.flatMap((line) => wrap(line, width)).join('')
}

const mark = '  | '

const sumOf = (texts: string[]) => texts.reduce((sum, text) => sum + text.length, 0)

function describeEvent(event: string): string[] {
  const fields = [...childrenOf(event, skipBlanks(event, 0))]
  const spelled = (key: string) =>
    fields.filter(({ name }) => name === key).map(({ start, end }) => event.slice(start, end))
  const texts = (key: string) =>
    spelled(key)
      .map((json) => JSON.parse(json))
      .filter((value) => typeof value === 'string')
      .map(visible)
  const inputs = spelled('input')
  if (sumOf(inputs) > longest) throw tooLong()
  return [
    ...texts('mcp_server_name').map((server) => `MCP server: ${server}`),
    ...texts('name').map((name) => `tool: ${name}`),
    ...inputs.flatMap(showJson),
  ]
}

/** Indented, and where a text has a new line there is one here too, after its `\n`. */
function showJson(json: string): string[] {
  if (isDeeperThan(json, deepest)) throw unshown(`nested more than ${deepest} deep`)
  return layOut(json, '')
    .split('\n')
    .flatMap((line) => {
      const indent = ' '.repeat(line.search(/\S/) + 4)
      const broken = line.replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `\\n\n${indent}` : found))
      return broken.split('\n').map(visible)
    })
}

/** Numbers and repeated keys as they are spelled; texts without escapes that are not needed. */
function layOut(json: string, indent: string): string {
  const [opening = ''] = json
  if (opening === '"') return JSON.stringify(JSON.parse(json))
  if (opening !== '{' && opening !== '[') return json
  const inner = `${indent}  `
  const children = [...childrenOf(json, 0)].map(({ name, start, end }) => {
    const key = name === undefined ? '' : `${JSON.stringify(name)}: `
    return inner + key + layOut(json.slice(start, end), inner)
  })
  const closing = opening === '{' ? '}' : ']'
  if (children.length === 0) return opening + closing
  return `${opening}\n${children.join(',\n')}\n${indent}${closing}`
}

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu

/** Text whose invisible characters, and those that move others, are escaped as in JSON. */
export const visible = (text: string): string =>
  text.replace(unseen, (char) =>
    char
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  )

/** At most so many: a character beyond ASCII may be two wide. Rather a line too short than one that the terminal wraps. */
export const columnsOf = (text: string): number =>
  [...text].reduce((sum, char) => sum + (char < '\x7f' ? 1 : 2), 0)

function wrap(line: string, width: number): string[] {
  const rows: string[] = []
  let row = ''
  let room = width
  for (const char of line) {
    room -= columnsOf(char)
    if (room < 0) {
      rows.push(row)
      row = ''
      room = width - columnsOf(char)
    }
    row += char
  }
  return [...rows, row].map((each) => `${mark}${each}\n`)
}

const tooLong = () => unshown('longer than 1 MiB')

const unshown = (why: string) =>
  usage(
    `a tool use that waits is ${why}, so it cannot be shown whole: look at it with 'parley events list --raw', then answer by its id with --allow or --deny`,
  )
