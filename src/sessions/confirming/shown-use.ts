import { usage } from '../../errors.ts'
import { layOutJson } from '../../io/json-lines.ts'
import type { Span } from '../../io/spans.ts'
import { childrenOf, isDeeperThan, skipBlanks } from '../../wire/json/scanner.ts'
import { startOf } from '../../wire/text-start.ts'
import { columnsOf, cut, plainly, visible } from '../plain-name.ts'

/** How the rows of a tool use are shown. */
export interface Screen {
  columns: number
  paint(row: Span[]): string
}

/** In characters. */
const longest = 2 ** 20

const deepest = 100

/** If a tool use takes more rows, its beginning is repeated after it. */
const mostRows = 20

/** Begins a row, and a row that continues the one above it. */
const marks = { row: '  | ', more: '  : ' }

const bold = '1'

/**
 * All that is known about a tool use, for a person who decides on it. Nothing is cut or hidden, not even a key that is
 * there twice. Each row begins with a mark, also one that the terminal would have wrapped, so that no text can look like
 * a row of parley's own. Throws a usage error if the event is too long or nested too deep for that.
 */
export function showToolUse(id: string, event: string, { columns, paint }: Screen): string {
  const width = Math.max(columns - marks.row.length - 1, 20)
  const rows: string[] = []
  let size = 0
  const show = (line: readonly Span[], first = marks.row) => {
    const spans = line.map((span) => ({ ...span, text: visible(span.text) }))
    size += spans.reduce((sum, { text }) => sum + text.length, 0)
    if (size > longest) throw unshown('longer than 1 MiB')
    for (const [index, row] of wrap(spans, width).entries())
      rows.push(`${index === 0 ? first : marks.more}${paint(row)}\n`)
  }
  const showName = (label: string, name: string) =>
    show([
      { text: `${label}: `, look: '' },
      { text: plainly(name), look: bold },
    ])
  const fields = readFields(event)
  show([{ text: `id: ${plainly(id)}`, look: '' }])
  for (const server of textsOf(fields, 'mcp_server_name')) showName('MCP server', server)
  const names = textsOf(fields, 'name')
  for (const name of names) showName('tool', name)
  const inputs = fields.filter(({ name }) => name === 'input').map(({ json }) => json)
  for (const json of inputs) {
    if (isDeeperThan(json, deepest)) throw unshown(`nested more than ${deepest} deep`)
    layOutJson(json, (line) => {
      for (const [index, part] of breakTexts(line).entries()) show(part, index === 0 ? undefined : marks.more)
    })
  }
  if (rows.length > mostRows) rows.push(`${marks.row}${cut(visible(summarize(names, inputs)), width)}\n`)
  return rows.join('')
}

/** Whether a tool use says, as a text, which tool it is for. */
export function namesTool(event: string): boolean {
  const fields = readFields(event)
  const names = fields.filter(({ name }) => name === 'name')
  return names.length > 0 && names.length === textsOf(fields, 'name').length
}

interface Field {
  name: string | undefined
  /** The value as it is spelled. */
  json: string
}

const readFields = (json: string): Field[] =>
  [...childrenOf(json, skipBlanks(json, 0))].map(({ name, start, end }) => ({
    name,
    json: json.slice(start, end),
  }))

/** The values of a field that are texts. */
const textsOf = (fields: readonly Field[], wanted: string): string[] =>
  fields
    .filter(({ name, json }) => name === wanted && json.startsWith('"'))
    .map(({ json }) => JSON.parse(json) as string)

/** How much of each field stands in a summary, in characters. */
const briefField = 40

/** The tool and the beginning of each field, short fields first: a path tells more than the beginning of a content. */
function summarize(names: readonly string[], inputs: readonly string[]): string {
  const fields = inputs.flatMap((json) =>
    /^[{[]/.test(json) ? readFields(json) : [{ name: undefined, json }],
  )
  const isShort = ({ json }: Field) => json.length <= briefField
  const ordered = [...fields.filter(isShort), ...fields.filter((field) => !isShort(field))]
  const shown = ordered.slice(0, briefField).map((field) => {
    const value = isShort(field) ? field.json : `${startOf(field.json, briefField)}…`
    return field.name === undefined ? value : `${JSON.stringify(startOf(field.name, briefField))}: ${value}`
  })
  return `${names.map(plainly).join(' ')} ${shown.join(', ')}`.replace(/\s+/g, ' ')
}

/** A new line in a text begins a row here too, after its `\n`. */
function breakTexts(line: readonly Span[]): Span[][] {
  const [lead] = line
  const indent = { text: `${/^ */.exec(lead?.text ?? '')?.[0]}    `, look: '' }
  const lines: Span[][] = [[]]
  for (const span of line) {
    const parts = span.text.replace(/(\\n)(?!")|\\./g, (found, isBreak) => (isBreak ? `${found}\n` : found))
    for (const [index, text] of parts.split('\n').entries()) {
      if (index > 0) lines.push([indent])
      lines.at(-1)?.push({ ...span, text })
    }
  }
  return lines
}

function wrap(line: readonly Span[], width: number): Span[][] {
  const rows: Span[][] = [[]]
  let room = width
  for (const { text, look } of line) {
    let from = 0
    let at = 0
    const put = () => rows.at(-1)?.push({ text: text.slice(from, at), look })
    for (const char of text) {
      room -= columnsOf(char)
      if (room < 0) {
        put()
        rows.push([])
        from = at
        room = width - columnsOf(char)
      }
      at += char.length
    }
    put()
  }
  return rows
}

const unshown = (why: string) => usage(`a tool use that waits is ${why}, so it cannot be shown whole`)
