import type { Context } from '../../context.ts'
import { escapeControls } from '../../io/escape.ts'
import { toTsv } from '../../io/tsv.ts'
import { readStopReason, readText, type SessionEvent } from '../../wire/sessions/session-event.ts'

/** An event as id, type, time and what it says. */
export const toRow = (event: SessionEvent): string[] => [
  event.id ?? '',
  event.type,
  event.processed_at ?? '',
  describeEvent(event),
]

function describeEvent(event: SessionEvent): string {
  const text = readText(event)
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
  const { message } = (typeof event.error === 'object' && event.error ? event.error : {}) as {
    message?: unknown
  }
  return shown(message)
}

/** A field that should be text: not every value of a service's can be turned into one. */
const shown = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)

/** Prints events that are all there: a table on a terminal, else a line of tab-separated fields each. */
export const printEvents = (context: Context, events: readonly SessionEvent[]): Promise<void> =>
  createRowPrinter(context)(events)

/** The same for events that come page by page: one table, under one header. */
export function createRowPrinter({
  output,
  host,
  style,
}: Context): (events: readonly SessionEvent[]) => Promise<void> {
  let layOut: ReturnType<typeof import('./event-table.ts').createEventTable> | undefined
  const paints = { head: style.bold, day: style.dim, event: String }
  return async (events) => {
    const rows = events.map(toRow)
    if (!output.isTerminal) return output.write(rows.map(toTsv).join(''))
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
