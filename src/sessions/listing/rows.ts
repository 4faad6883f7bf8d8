import type { Context } from '../../context.ts'
import { escapeControls } from '../../io/escape.ts'
import { formatTsvLine } from '../../io/tsv.ts'
import {
  describeEventContent,
  readEventError,
  readStopReason,
  type SessionEvent,
} from '../../wire/sessions/session-event.ts'

export const toEventRow = (event: SessionEvent) =>
  [event.id ?? '', event.type, event.processed_at ?? '', describeEvent(event)] as const

/** Describes an event without content by its most important fields, or by all of its own fields as JSON. */
function describeEvent(event: SessionEvent): string {
  const text = describeEventContent(event)
  if (text !== '') return text
  const { id: _, type, processed_at: __, ...fields } = event
  if (type === 'session.status_idle') {
    const { type: reason = '', eventIds = [] } = readStopReason(event)
    return join([reason, ...eventIds])
  }
  if (/tool_use$/.test(type)) return join([formatValue(event.name), JSON.stringify(event.input ?? {})])
  if (type === 'user.tool_confirmation')
    return join([event.result, event.tool_use_id, event.deny_message].map(formatValue))
  const { message } = readEventError(event.error)
  return message ?? (Object.keys(fields).length > 0 ? JSON.stringify(fields) : '')
}

const join = (parts: string[]) => parts.filter((part) => part !== '').join(' ')

/** Returns texts unchanged, and other values as JSON, because `String()` throws for some objects. */
const formatValue = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)

/**
 * Returns a function that prints events page by page: on a terminal as one table, otherwise as tab-separated
 * lines.
 */
export function createEventRowPrinter({
  output,
  host,
  messages,
}: Context): (events: readonly SessionEvent[]) => Promise<void> {
  let layOut: ReturnType<typeof import('./event-table.ts').createEventTableFormatter> | undefined
  return async (events) => {
    if (!output.isTerminal)
      return output.write(events.map((event) => formatTsvLine(toEventRow(event))).join(''))
    layOut ??= (await import('./event-table.ts')).createEventTableFormatter(
      ['ID', 'TYPE', 'TIME', 'TEXT'],
      host.stdout.columns || 80,
      messages.style,
    )
    const lines = layOut(events.map(toEventRow))
    return output.write(lines.map((line) => `${line}\n`).join(''))
  }
}

export function printIds({ output }: Context, items: readonly { id?: string }[]): Promise<void> {
  const text = items.map(({ id }) => formatTsvLine([id ?? ''])).join('')
  return output.write(output.isTerminal ? escapeControls(text) : text)
}
