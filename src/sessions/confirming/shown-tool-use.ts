import { usageError } from '../../errors.ts'
import { formatJsonLines } from '../../io/json-layout.ts'
import { isDeeperThan, listChildren, skipBlanks } from '../../wire/json/scanner.ts'
import { escapeInvisible, estimateColumns, formatName } from '../plain-name.ts'

/** Maximum length of a shown event, in characters. */
const maxEventLength = 2 ** 20

const maxDepth = 100

/** Marks of a row and of its continuation rows. */
const marks = { row: '  | ', more: '  : ' }

/**
 * Formats a whole tool use for the person who decides. Nothing is cut or hidden, not even a duplicate key.
 * Each row begins with a mark, even a row that the terminal would wrap, so nobody can take the service's text
 * for a row of parley. Throws a usage error if the tool has no name, or the event is too long or nested too
 * deep.
 */
export function showToolUse(id: string, event: string, columns: number): string {
  if (!namesTool(event)) throw usageError('its tool has no name')
  const width = Math.max(columns - marks.row.length - 1, 20)
  const rows: string[] = []
  let size = 0
  const show = (line: string, first = marks.row) => {
    const text = escapeInvisible(line)
    size += text.length
    if (size > maxEventLength) throw usageError('it is longer than 1 MiB')
    for (const [index, row] of [...wrap(text, width)].entries())
      rows.push(`${index === 0 ? first : marks.more}${row}\n`)
  }
  const fields = readFields(event)
  show(`id: ${formatName(id)}`)
  const servers = textsOf(fields, 'mcp_server_name')
  for (const server of servers) show(`MCP server: ${formatName(server)}`)
  if (servers.length === 0 && textsOf(fields, 'type').includes('agent.mcp_tool_use'))
    show('MCP server: not named')
  for (const name of textsOf(fields, 'name')) show(`tool: ${formatName(name)}`)
  const inputs = fields.filter(({ name }) => name === 'input')
  for (const { json } of inputs) {
    if (isDeeperThan(json, maxDepth)) throw usageError(`it is nested more than ${maxDepth} deep`)
    const main = inputs.length === 1 ? findMainText(json) : undefined
    if (main) {
      const lines = main.text.split('\n')
      if (lines.length === 1) show(`${main.name}: ${main.text}`)
      else for (const line of [`${main.name}:`, ...lines.map((line) => `  ${line}`)]) show(line)
    }
    const rest = main ? main.rest : json
    for (const spans of rest === undefined ? [] : formatJsonLines(rest)) {
      const [first = '', ...more] = breakTexts(spans.map(({ text }) => text).join(''))
      show(first)
      for (const part of more) show(part, marks.more)
    }
  }
  return rows.join('')
}

/** Fields of an input that a person decides by, the most important first. */
const mainNames = ['command', 'path', 'query', 'url']

interface MainText {
  name: string
  text: string
  /** Source text of the input's other fields, as an object. `undefined` if there are none. */
  rest: string | undefined
}

/**
 * Finds the text that a person decides by. Returns `undefined` for a text with invisible characters, because
 * only JSON shows them without doubt, and for an input that repeats the field.
 */
function findMainText(input: string): MainText | undefined {
  if (!input.startsWith('{')) return undefined
  const fields = readFields(input)
  const [main, ...more] = mainNames.flatMap((wanted) => fields.filter(({ name }) => name === wanted))
  if (!main?.json.startsWith('"') || more.some(({ name }) => name === main.name)) return undefined
  const text = JSON.parse(main.json) as string
  if (text === '' || text.split('\n').some((line) => escapeInvisible(line) !== line)) return undefined
  const others = fields.filter((field) => field !== main)
  const rest = others.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(',')
  return { name: main.name ?? '', text, rest: others.length > 0 ? `{${rest}}` : undefined }
}

/** Returns whether a tool use has the name of its tool, as a text. */
export function namesTool(event: string): boolean {
  const fields = readFields(event)
  const names = fields.filter(({ name }) => name === 'name')
  return names.length > 0 && names.length === textsOf(fields, 'name').length
}

interface Field {
  name: string | undefined
  /** Source text of the value. */
  json: string
}

const readFields = (json: string): Field[] =>
  [...listChildren(json, skipBlanks(json, 0))].map(({ name, start, end }) => ({
    name,
    json: json.slice(start, end),
  }))

/** Returns the values of a field that are texts. */
const textsOf = (fields: readonly Field[], wanted: string): string[] =>
  fields
    .filter(({ name, json }) => name === wanted && json.startsWith('"'))
    .map(({ json }) => JSON.parse(json) as string)

/** A line break in a text ends the row: the next row begins after the escaped `\n`. */
function breakTexts(line: string): string[] {
  const indent = `${/^ */.exec(line)?.[0]}    `
  return line
    .replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `${found}\n` : found))
    .split('\n')
    .map((part, index) => (index === 0 ? part : indent + part))
}

/** Yields the rows of a text. A row ends after a blank, except before a word that is longer than a row. */
function* wrap(text: string, width: number): Generator<string> {
  let start = 0
  let at = 0
  let columns = 0
  /** The end of the last blank of the row that is not indentation, and the columns up to there. */
  let blankEnd = 0
  let blankColumns = 0
  let hasWord = false
  for (const char of text) {
    const more = estimateColumns(char)
    if (columns + more > width) {
      const isAtBlank = blankEnd > start && fitsWord(text, blankEnd, width)
      const end = isAtBlank ? blankEnd : at
      yield text.slice(start, end)
      columns = isAtBlank ? columns - blankColumns : 0
      start = end
      hasWord = at > start
    }
    at += char.length
    columns += more
    if (char !== ' ') hasWord = true
    else if (hasWord) [blankEnd, blankColumns] = [at, columns]
  }
  yield text.slice(start)
}

/** Returns whether the word at this place fits in a row. */
function fitsWord(text: string, place: number, width: number): boolean {
  const [word = ''] = text.slice(place, place + width + 1).split(' ', 1)
  return estimateColumns(word) <= width
}
