import type { Context } from '../../context.ts'
import { escapeControls } from '../../io/escape.ts'
import { toTsv } from '../../io/tsv.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  readBlockTypes,
  readStopReason,
  readText,
  type SessionEvent,
} from '../../wire/sessions/session-event.ts'
import { readUsage } from '../../wire/sessions/usage.ts'
import { describeUsage } from '../usage-text.ts'

/** An event as id, type, time and what it says. */
export const toRow = (event: SessionEvent, describe = describeEvent): string[] => [
  event.id ?? '',
  event.type,
  event.processed_at ?? '',
  describe(event),
]

function describeEvent(event: SessionEvent): string {
  const text = readText(event)
  if (text !== '') return text
  const blocks = readBlockTypes(event)
  if (blocks.length > 0) return blocks.map((type) => `[${type}]`).join(' ')
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

/** A field that should be text: not every value of a service's can be turned into one. */
const shown = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)

/** What an event says and, of one that was sent, all else that it holds. */
function describeEcho(event: SessionEvent): string {
  const text = describeEvent(event)
  const others = Object.entries(event).filter(
    ([name, value]) => value != null && !toldOf(event, text).has(name),
  )
  return [text, ...others.map(([name, value]) => `${name} ${shown(value)}`)]
    .filter((part) => part !== '')
    .join('; ')
}

/** The fields of an event that stand in a column already. */
const toldOf = ({ type }: SessionEvent, text: string) =>
  new Set([
    ...['id', 'type', 'processed_at'],
    ...(text === '' ? [] : ['content']),
    ...(type === 'user.define_outcome' ? ['description'] : []),
    ...(type === 'user.tool_confirmation' ? ['result', 'tool_use_id', 'deny_message'] : []),
  ])

/** Prints events that were sent: a table on a terminal, else a line of tab-separated fields each. */
export const printEcho = (context: Context, events: readonly SessionEvent[]): Promise<void> =>
  createRowPrinter(context, context.output.isTerminal ? describeEcho : describeEvent)(events)

/** Makes what prints events that come page by page: one table, under one header, or tab-separated fields. */
function createRowPrinter(
  { output, host, style }: Context,
  describe = describeEvent,
): (events: readonly SessionEvent[]) => Promise<void> {
  let layOut: ReturnType<typeof import('./event-table.ts').createEventTable> | undefined
  const paints = { head: style.bold, day: style.dim, event: String }
  return async (events) => {
    const rows = events.map((event) => toRow(event, describe))
    if (!output.isTerminal) return output.write(rows.map(toTsv).join(''))
    layOut ??= (await import('./event-table.ts')).createEventTable(host.stdout.columns || 80)
    return output.write(
      layOut(rows)
        .map(({ kind, text }) => `${paints[kind](text)}\n`)
        .join(''),
    )
  }
}

/** At most as many events are shown whole. */
const few = 5

/** Makes what prints a list page by page. On a terminal few events that were chosen are shown whole. */
export function createListPrinter(context: Context, isChosen: boolean) {
  const printRows = createRowPrinter(context)
  let held: EventItem[] | undefined = isChosen && context.output.isTerminal ? [] : undefined
  return {
    async add(items: readonly EventItem[]): Promise<void> {
      const all = [...(held ?? []), ...items]
      if (held) held = all.length > few ? undefined : all
      if (!held) await printRows(all.map(({ event }) => event))
    },
    /** Nothing more comes. */
    async end(): Promise<void> {
      if (!held || held.length === 0) return
      const { printWholeEvents } = await import('./whole-event.ts')
      await printWholeEvents(context, held)
    },
  }
}

/** Prints only the ids, one a line. */
export function printIds({ output }: Context, events: readonly { id?: string }[]): Promise<void> {
  const text = events.map(({ id }) => toTsv([id ?? ''])).join('')
  return output.write(output.isTerminal ? escapeControls(text) : text)
}
