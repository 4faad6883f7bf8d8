import type { Context } from '../../context.ts'
import { escapeControls } from '../../io/escape.ts'
import { toTsv } from '../../io/tsv.ts'
import { describeContent, readStopReason, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { readUsage } from '../../wire/sessions/usage.ts'
import { startOf } from '../../wire/text-start.ts'
import { answeredId, isToolUse } from '../session-state.ts'
import { describeUsage } from '../usage-text.ts'
import type { EventRow } from './event-table.ts'

/** An event as id, type, time and what it says. */
export const toRow = (event: SessionEvent): [id: string, type: string, time: string, text: string] => [
  event.id ?? '',
  event.type,
  event.processed_at ?? '',
  describeEvent(event),
]

function describeEvent(event: SessionEvent): string {
  const text = describeContent(event)
  if (text !== '') return text
  const { type } = event
  if (type === 'session.status_idle') {
    const { type: reason = '', eventIds = [] } = readStopReason(event)
    return [reason, ...eventIds].join(' ')
  }
  if (/tool_use$/.test(type)) return `${shown(event.name)} ${JSON.stringify(event.input ?? {})}`
  if (type === 'user.tool_confirmation') {
    const fields = [event.result, event.tool_use_id, event.deny_message]
    return fields
      .filter((field) => field != null)
      .map(shown)
      .join(' ')
  }
  if (type === 'user.define_outcome') return shown(event.description)
  if (type === 'session.usage') return describeUsage(readUsage(event.usage) ?? {})
  if (type === 'span.model_request_end') return describeUsage(readUsage(event.model_usage) ?? {})
  const { message } = (typeof event.error === 'object' && event.error ? event.error : {}) as {
    message?: unknown
  }
  return shown(message)
}

const join = (parts: string[], gap: string) => parts.filter((part) => part !== '').join(gap)

/** A field that should be text: not every value of a service's can be turned into one. */
const shown = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)

/** What is not told of an event that was sent by its other columns, and by its text. */
function describeOthers(event: SessionEvent, text: string): string[] {
  const told = toldOf(event, text)
  return Object.entries(event)
    .filter(([name, value]) => value != null && !told.has(name))
    .map(([name, value]) => `${name} ${shown(value)}`)
}

/** The fields of an event that stand in a column already. */
const toldOf = ({ type }: SessionEvent, text: string) =>
  new Set([
    ...['id', 'type', 'processed_at', 'tool_use_id', 'custom_tool_use_id', 'is_error'],
    ...(text === '' ? [] : ['content']),
    ...(type === 'user.define_outcome' ? ['description'] : []),
    ...(type === 'user.tool_confirmation' ? ['result', 'deny_message'] : []),
  ])

/** Prints events that were sent: a table on a terminal, else a line of tab-separated fields each. */
export const printEcho = (context: Context, events: readonly SessionEvent[]): Promise<void> =>
  createRowPrinter(context, describeOthers)(events)

/** The names of so many tool uses are known at most, and so much of each. */
const [mostNames, longestName] = [1000, 100]

/**
 * Makes what prints events that come page by page: one table, under one header, or tab-separated fields. On a terminal
 * the text of an answer begins with what was answered, and how: by the name of the tool, or its id if no event named it.
 */
export function createRowPrinter(
  { output, host, style }: Context,
  describeMore: (event: SessionEvent, text: string) => string[] = () => [],
): (events: readonly SessionEvent[]) => Promise<void> {
  let layOut: ReturnType<typeof import('./event-table.ts').createEventTable> | undefined
  const names = new Map<string, string>()
  const paints = { head: style.bold, day: style.dim, event: String }

  function describeAnswer(event: SessionEvent): string {
    const id = answeredId(event)
    if (id === undefined) return ''
    const how = event.is_error === true ? 'failed' : shown(event.result)
    return join([names.get(id) ?? id, how], ' ')
  }

  function toTableRow(event: SessionEvent): EventRow {
    if (isToolUse(event) && event.id !== undefined) {
      names.set(event.id, startOf(shown(event.name), longestName))
      if (names.size > mostNames) names.delete(names.keys().next().value ?? '')
    }
    const [id, type, time, text] = toRow(event)
    const answer = describeAnswer(event)
    const own = type === 'user.tool_confirmation' ? shown(event.deny_message) : text
    return [id, type, time, join([join([answer, own], ': '), ...describeMore(event, text)], '; '), answer]
  }

  return async (events) => {
    if (!output.isTerminal) return output.write(events.map((event) => toTsv(toRow(event))).join(''))
    const rows = events.map(toTableRow)
    layOut ??= (await import('./event-table.ts')).createEventTable(host.stdout.columns || 80)
    return output.write(
      layOut(rows)
        .map(({ kind, text }) => `${paints[kind](text)}\n`)
        .join(''),
    )
  }
}

/** Prints only the ids, one a line. */
export function printIds({ output }: Context, events: readonly { id?: string }[]): Promise<void> {
  const text = events.map(({ id }) => toTsv([id ?? ''])).join('')
  return output.write(output.isTerminal ? escapeControls(text) : text)
}
