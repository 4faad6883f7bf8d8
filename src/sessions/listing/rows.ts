import type { Context } from '../../context.ts'
import { escapeControls } from '../../io/escape.ts'
import { formatTsvLine } from '../../io/tsv.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  describeEventContent,
  readEventError,
  readServiceRefusal,
  readStopReason,
  readWorkflowRunResult,
  type SessionEvent,
} from '../../wire/sessions/session-event.ts'
import { readSessionUsage } from '../../wire/sessions/usage.ts'
import { findToolInput, summarizeToolUse } from '../tool-use-summary.ts'
import { describeSessionUsage } from '../usage-text.ts'
import type { ListingRow } from './listing-table.ts'

export const toEventRow = (item: EventItem) => {
  const { id = '', type, processed_at } = item.event
  return [id, type, processed_at ?? '', describeEvent(item)] as const
}

function describeEvent({ event, text }: EventItem): string {
  const content = describeEventContent(event)
  if (content !== '') return content
  const { type } = event
  if (type === 'session.status_idle') return describeStop(event)
  if (/^session\.thread_/.test(type)) {
    const { session_thread_id: thread, agent_name: agent, workflow_run_id: run } = event
    return join([thread, agent, run, describeStop(event)].map(formatValue), ' ')
  }
  if (/^workflow_run\./.test(type)) return describeWorkflowRun(event)
  if (/tool_use$/.test(type)) {
    const reason = readServiceRefusal(event)
    const refusal = reason === undefined ? '' : join(['refused by the service', reason], ': ')
    const use = { type, name: event.name, server: event.mcp_server_name }
    return join([summarizeToolUse(use, findToolInput(text)), refusal], '; ')
  }
  if (type === 'user.tool_confirmation')
    return join([event.result, event.tool_use_id, event.deny_message].map(formatValue), ' ')
  if (type === 'user.define_outcome') return formatValue(event.description)
  if (type === 'session.usage') return describeSessionUsage(readSessionUsage(event.usage) ?? {})
  if (type === 'span.model_request_end')
    return describeSessionUsage(readSessionUsage(event.model_usage) ?? {})
  return readEventError(event.error).message ?? ''
}

function describeStop(event: SessionEvent): string {
  const { type = '', eventIds = [] } = readStopReason(event)
  return join([type, ...eventIds], ' ')
}

function describeWorkflowRun(event: SessionEvent): string {
  const { type, message } = readWorkflowRunResult(event)
  const { workflow_run_id: run, name, workflow_run_phase_id: phase, description, error } = event
  const what = join([run, name, phase, type].map(formatValue), ' ')
  return join([what, description, message ?? readEventError(error).message].map(formatValue), ': ')
}

const join = (parts: string[], gap: string) => parts.filter((part) => part !== '').join(gap)

/** Returns texts unchanged, and other values as JSON, because `String()` throws for some objects. */
const formatValue = (value: unknown): string =>
  typeof value === 'string' ? value : value == null ? '' : JSON.stringify(value)

/**
 * Returns a function that prints items page by page: on a terminal as one table, otherwise as tab-separated
 * lines.
 */
export function createRowPrinter<Item>(
  { output, host, messages }: Context,
  titles: ListingRow,
  toRow: (item: Item) => ListingRow,
  toTsvRow: (item: Item) => readonly string[] = toRow,
): (items: readonly Item[]) => Promise<void> {
  let layOut: ReturnType<typeof import('./listing-table.ts').createListingTableFormatter> | undefined
  return async (items) => {
    if (!output.isTerminal) return output.write(items.map((item) => formatTsvLine(toTsvRow(item))).join(''))
    const { createListingTableFormatter } = await import('./listing-table.ts')
    layOut ??= createListingTableFormatter(titles, host.stdout.columns || 80, messages.style)
    return output.write(
      layOut(items.map(toRow))
        .map((line) => `${line}\n`)
        .join(''),
    )
  }
}

export const createEventRowPrinter = (context: Context) =>
  createRowPrinter(context, ['ID', 'TYPE', 'TIME', 'TEXT'], toEventRow)

export function printIds({ output }: Context, items: readonly { id?: string }[]): Promise<void> {
  const text = items.map(({ id }) => formatTsvLine([id ?? ''])).join('')
  return output.write(output.isTerminal ? escapeControls(text) : text)
}
