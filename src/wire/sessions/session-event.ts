import { isObject } from '../json/parse.ts'
import { describeError } from '../problem/problem.ts'
import * as z from '../zod.ts'

/** An event as the service sends it. Only fields that are printed or followed are read, and any type is accepted. */
export const SessionEvent = z.looseObject({
  id: z.catch(z.optional(z.string()), undefined),
  type: z.string(),
  processed_at: z.catch(z.nullish(z.string()), undefined),
})
export type SessionEvent = z.infer<typeof SessionEvent>

/** The answer to sending events (session events, 2.3; public clients, 1). */
export const EventsReceipt = z.looseObject({ data: z.nullish(z.array(SessionEvent)) })

/** A text that says something. */
const filled = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

const fieldsOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})

interface StopReason {
  type?: string
  /** The events that wait. */
  eventIds?: string[]
  /** Entries of the list that are not ids. */
  oddIds?: unknown[]
}

/**
 * Reads why a session is idle. Some services give a text, or nothing. The specification shows `event_ids` without a type,
 * so any entry means `requires_action`. A list without a single id counts as missing.
 */
export function readStopReason({ stop_reason: reason }: SessionEvent): StopReason {
  if (typeof reason === 'string') return { type: reason }
  const { type, event_ids: ids } = fieldsOf(reason)
  const list: unknown[] = Array.isArray(ids) ? ids : []
  const eventIds = [...new Set(list.map(filled).filter((id) => id !== undefined))]
  const oddIds = list.filter((id) => filled(id) === undefined)
  return {
    type: filled(type) ?? (list.length > 0 ? 'requires_action' : undefined),
    eventIds: Array.isArray(ids) && (eventIds.length > 0 || oddIds.length === 0) ? eventIds : undefined,
    oddIds: oddIds.length > 0 ? oddIds : undefined,
  }
}

/** What a service says of a stop, such as a refusal, beside the reason or in it (public clients, 4). */
export function readStopDetails({ stop_details: beside, stop_reason: reason }: SessionEvent): {
  category?: string
  explanation?: string
} {
  const { category, explanation } = fieldsOf(beside ?? fieldsOf(reason).stop_details)
  return { category: filled(category), explanation: filled(explanation) }
}

/** The error of a `session.error`, a `workflow_run.error` or a workflow run's result (public clients, 4 and 10). */
export function readError(error: unknown): {
  type?: string
  message?: string
  /** The MCP server that the error is about. */
  server?: string
  /** The service does not retry by itself any more. */
  isFinal: boolean
} {
  const { type, mcp_server_name: server, retry_status: retry } = fieldsOf(error)
  return {
    type: filled(type),
    message: describeError(error),
    server: filled(server),
    isFinal: /^(exhausted|terminal)$/.test(
      filled(typeof retry === 'string' ? retry : fieldsOf(retry).type) ?? '',
    ),
  }
}

/** How a workflow run ended, as `workflow_run.status_ended` shows it (public clients, 10). */
export function readRunResult({ result }: SessionEvent): { type?: string; message?: string } {
  if (typeof result === 'string') return { type: filled(result) }
  const { type, error } = fieldsOf(result)
  return { type: filled(type), message: readError(error).message }
}

/**
 * Why the service itself refused a tool use (public clients, 10). Absent if it did not refuse the tool use; empty if it
 * gives no reason.
 */
export function readRefusal(event: SessionEvent): string | undefined {
  if (!isToolUse(event) || event.evaluated_permission !== 'deny') return undefined
  return filled(fieldsOf(fieldsOf(event.evaluation).evaluated_permission).reason_code) ?? ''
}

/** The blocks of an event's content, which is a list of them or a text. */
function blocksOf({ content }: SessionEvent): Record<string, unknown>[] {
  if (typeof content === 'string') return [{ text: content }]
  return Array.isArray(content) ? content.filter(isObject) : []
}

/** The text in an event's content. */
export const readText = (event: SessionEvent): string =>
  blocksOf(event)
    .map(({ text }) => filled(text) ?? '')
    .join('')

/** The same, with a mark for each part that the service has removed. */
export const readMarkedText = (event: SessionEvent): string =>
  blocksOf(event)
    .map(({ type, text }) => (type === 'redacted' ? '[redacted]' : (filled(text) ?? '')))
    .join('')

/** The same for a row of a table: texts are parted by a blank, and a block of another kind is named, such as `[image]`. */
export const describeContent = (event: SessionEvent): string =>
  blocksOf(event)
    .map(({ type, text }) => (typeof text === 'string' ? text : `[${filled(type) ?? 'unknown'}]`))
    .join(' ')

/** Returns whether the service has removed a part of an event's content (public clients, 10). */
export const isRedacted = (event: SessionEvent): boolean =>
  blocksOf(event).some(({ type }) => type === 'redacted')

/** A piece of an event that follows whole (recorded, 6): it has no id, and is not an event of its own. */
export const isPiece = ({ id, type }: SessionEvent): boolean =>
  id === undefined && (type === 'event_start' || type === 'event_delta')

/** Whether it is about the session itself, and not about one of its further threads. */
export const isOfMainThread = ({ session_thread_id: thread }: SessionEvent): boolean =>
  thread === undefined || thread === null || thread === ''

/** Whether the session stops with this event, for now or for good. */
export const isStop = (event: SessionEvent): boolean =>
  /^session\.(status_idle|status_terminated|deleted)$/.test(event.type) && isOfMainThread(event)

/** Whether an agent works from this event on: it was sent by a client, or says so. An interrupt starts no work. */
export const isWork = ({ type }: SessionEvent): boolean =>
  type === 'session.status_running' || (/^(user|system)\./.test(type) && type !== 'user.interrupt')

/** Fields with which an answer or a result names its tool use. */
export const answerFields = ['tool_use_id', 'custom_tool_use_id', 'mcp_tool_use_id']

/** Types of events after which a tool use needs no answer: what a client says, and what the service says ran. */
export const isAnswer = (type: string) =>
  /^user\.(tool_confirmation|tool_result|custom_tool_result)$|^agent\.(mcp_)?tool_result$/.test(type)

/** The tool use whose decision or result an event is. */
export function answeredId(event: SessionEvent): string | undefined {
  const ids = isAnswer(event.type) ? answerFields.map((field) => event[field]) : []
  return ids.find((each): each is string => typeof each === 'string')
}

export const isToolUse = ({ type }: SessionEvent): boolean => /^agent\.(|mcp_|custom_)tool_use$/.test(type)
