import { usageError } from '../../errors.ts'
import { formatJsonLines } from '../../io/json-layout.ts'
import { isJsonDeeperThan, type JsonField, listJsonFields } from '../../wire/json/scanner.ts'
import { escapeInvisibleCharacters, estimateColumns, quoteUnusualName } from '../quoted-name.ts'
import { maxToolInputDepth } from '../session-state.ts'

const maxEventLength = 2 ** 20

const prefixes = { row: '  | ', more: '  : ' }

/**
 * Formats a tool use for the person who decides. The rows show the whole tool use, also duplicate keys. Each
 * row begins with a prefix, so the service's text cannot look like output of parley. Long rows are therefore
 * split here and not by the terminal. Throws a usage error if the event is too long or nested too deep.
 */
export function formatToolUse(id: string, eventJson: string, columns: number): string {
  const width = Math.max(columns - prefixes.row.length - 1, 20)
  const rows: string[] = []
  let size = 0
  const show = (line: string, first = prefixes.row) => {
    const text = escapeInvisibleCharacters(line)
    size += text.length
    if (size > maxEventLength) throw usageError('it is longer than 1 MiB')
    for (const [index, row] of [...wrap(text, width)].entries())
      rows.push(`${index === 0 ? first : prefixes.more}${row}\n`)
  }
  const fields = listJsonFields(eventJson)
  show(`id: ${quoteUnusualName(id)}`)
  const servers = getTexts(fields, 'mcp_server_name')
  for (const server of servers) show(`MCP server: ${quoteUnusualName(server)}`)
  if (servers.length === 0 && getTexts(fields, 'type').includes('agent.mcp_tool_use'))
    show('MCP server: not named')
  const names = fields.filter(({ name }) => name === 'name').map(({ json }) => json)
  for (const json of names.length > 0 ? names : ['(no name)'])
    show(`tool: ${json.startsWith('"') ? quoteUnusualName(JSON.parse(json)) : json}`)
  const inputs = fields.filter(({ name }) => name === 'input')
  for (const { json } of inputs) {
    if (isJsonDeeperThan(json, maxToolInputDepth))
      throw usageError(`it is nested more than ${maxToolInputDepth} levels deep`)
    const main = inputs.length === 1 ? findMainText(json) : undefined
    if (main) {
      const lines = main.text.split('\n')
      if (lines.length === 1) show(`${main.name}: ${main.text}`)
      else for (const line of [`${main.name}:`, ...lines.map((line) => `  ${line}`)]) show(line)
    }
    const rest = main ? main.rest : json
    for (const line of rest === undefined ? [] : formatJsonLines(rest)) {
      const [first = '', ...more] = breakTexts(line)
      show(first)
      for (const part of more) show(part, prefixes.more)
    }
  }
  return rows.join('')
}

const mainNames = ['command', 'path', 'query', 'url']

/**
 * Finds the most important text field of an input, which is shown without JSON escapes. Returns `undefined`
 * for a repeated field and for a text with invisible characters, because the person has to see the repetition
 * or the escapes.
 */
function findMainText(input: string) {
  if (!input.startsWith('{')) return undefined
  const fields = listJsonFields(input)
  const [main, ...more] = mainNames.flatMap((wanted) => fields.filter(({ name }) => name === wanted))
  if (!main?.json.startsWith('"') || more.some(({ name }) => name === main.name)) return undefined
  const text = JSON.parse(main.json) as string
  if (text === '' || text.split('\n').some((line) => escapeInvisibleCharacters(line) !== line))
    return undefined
  const others = fields.filter((field) => field !== main)
  const rest = others.map(({ name, json }) => `${JSON.stringify(name)}:${json}`).join(',')
  return { name: main.name ?? '', text, rest: others.length > 0 ? `{${rest}}` : undefined }
}

const getTexts = (fields: readonly JsonField[], wanted: string): string[] =>
  fields
    .filter(({ name, json }) => name === wanted && json.startsWith('"'))
    .map(({ json }) => JSON.parse(json) as string)

/** Splits a line of JSON after each escaped `\n`, so each line of a text is on a separate row. */
function breakTexts(line: string): string[] {
  const indent = `${/^ */.exec(line)?.[0]}    `
  return line
    .replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `${found}\n` : found))
    .split('\n')
    .map((part, index) => (index === 0 ? part : indent + part))
}

function* wrap(text: string, width: number): Generator<string> {
  let row = ''
  let columns = 0
  for (const char of text) {
    const more = estimateColumns(char)
    if (columns + more > width) {
      yield row
      row = ''
      columns = 0
    }
    row += char
    columns += more
  }
  yield row
}
