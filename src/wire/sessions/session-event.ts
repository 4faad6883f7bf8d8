import { isObject } from '../json/parse.ts'
import { readErrorMessage } from '../problem/problem.ts'
import * as z from '../zod.ts'

/** An event of any type. The schema checks only fields that events of all types have. */
export const SessionEvent = z.returnInputIfUnchanged(
  z.looseObject({
    id: z.catch(z.optional(z.string()), undefined),
    type: z.string(),
    processed_at: z.catch(z.nullish(z.string()), undefined),
  }),
  (event) =>
    isObject(event) &&
    typeof event.type === 'string' &&
    (event.id === undefined || typeof event.id === 'string') &&
    typeof (event.processed_at ?? '') === 'string',
)
export type SessionEvent = z.infer<typeof SessionEvent>

/** Response to sent events (src/wire/README.md: session events, 2.3; public clients, 1). */
export const EventsReceipt = z.looseObject({ data: z.nullish(z.array(SessionEvent)) })

const toNonEmptyText = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

const toFields = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {})

interface StopReason {
  type?: string
  eventIds?: string[]
}

/**
 * Reads why a session stopped. Some services send the reason as a text, or not at all. The specification
 * shows `event_ids` without a type, so a list with entries means `requires_action`. A list with entries that
 * are not ids is treated as missing.
 */
export function readStopReason({ stop_reason: reason }: SessionEvent): StopReason {
  if (typeof reason === 'string') return { type: reason }
  const { type, event_ids: ids } = toFields(reason)
  const list: unknown[] = Array.isArray(ids) ? ids : []
  const eventIds = [...new Set(list.map(toNonEmptyText).filter((id) => id !== undefined))]
  return {
    type: toNonEmptyText(type) ?? (list.length > 0 ? 'requires_action' : undefined),
    eventIds: Array.isArray(ids) && (eventIds.length > 0 || list.length === 0) ? eventIds : undefined,
  }
}

/**
 * Returns the details of a stop reason such as `refusal`. The field `stop_details` is in the event or in its
 * stop reason (src/wire/README.md: public clients, 4).
 */
export function readStopDetails({ stop_details: details, stop_reason: reason }: SessionEvent): {
  category?: string
  explanation?: string
} {
  const { category, explanation } = toFields(details ?? toFields(reason).stop_details)
  return { category: toNonEmptyText(category), explanation: toNonEmptyText(explanation) }
}

/**
 * Reads the error of a `session.error`, of a `workflow_run.error`, or of the result of a workflow run
 * (src/wire/README.md: public clients, 4 and 10).
 */
export function readEventError(error: unknown) {
  const { type, mcp_server_name: server, retry_status: retry } = toFields(error)
  return {
    type: toNonEmptyText(type),
    message: readErrorMessage(error),
    server: toNonEmptyText(server),
    isFinal: /^(exhausted|terminal)$/.test(
      toNonEmptyText(typeof retry === 'string' ? retry : toFields(retry).type) ?? '',
    ),
  }
}

/** Returns how a workflow run ended (src/wire/README.md: public clients, 10). */
export function readWorkflowRunResult({ result }: SessionEvent) {
  const { type, error } = toFields(result)
  return { type: toNonEmptyText(type), message: readEventError(error).message }
}

/**
 * Returns the service's reason for refusing a tool use. Returns an empty text if the service gave no reason,
 * and `undefined` if it did not refuse the tool use (src/wire/README.md: public clients, 10).
 */
export function readServiceRefusal(event: SessionEvent): string | undefined {
  if (!isToolUseEvent(event) || event.evaluated_permission !== 'deny') return undefined
  return toNonEmptyText(toFields(toFields(event.evaluation).evaluated_permission).reason_code) ?? ''
}

function readBlocks({ content }: SessionEvent): Record<string, unknown>[] {
  if (typeof content === 'string') return [{ text: content }]
  return Array.isArray(content) ? content.filter(isObject) : []
}

/** Services may replace a block by `{"type":"redacted"}` (src/wire/README.md: public clients, 10). */
const readBlockText = ({ type, text }: Record<string, unknown>): string | undefined =>
  type !== 'redacted' && typeof text === 'string' ? text : undefined

const readBlockType = ({ type }: Record<string, unknown>): string => toNonEmptyText(type) ?? 'unknown'

/** If `marksOthers` is true, the text has a mark such as `[image]` for each block that is not text. */
export const readEventText = (event: SessionEvent, marksOthers = false): string =>
  readBlocks(event)
    .map((block) => readBlockText(block) ?? (marksOthers ? `[${readBlockType(block)}]` : ''))
    .join('')

export const describeEventContent = (event: SessionEvent): string =>
  readBlocks(event)
    .map((block) => readBlockText(block) ?? `[${readBlockType(block)}]`)
    .join(' ')

/** Lists the types of the blocks that are not text, such as `image` or `redacted`. */
export function listOtherBlockTypes(event: SessionEvent): Set<string> {
  const others = readBlocks(event).filter((block) => readBlockText(block) === undefined)
  return new Set(others.map(readBlockType))
}

/**
 * Returns whether the event is a piece of a text. A piece has no id, and a later event with an id has the
 * whole text (src/wire/README.md: recorded, 6).
 */
export const isEventPiece = ({ id, type }: SessionEvent): boolean =>
  id === undefined && (type === 'event_start' || type === 'event_delta')

export const isMainThreadEvent = ({ session_thread_id: thread }: SessionEvent): boolean =>
  thread === undefined || thread === null || thread === ''

export const isUserEvent = ({ type }: SessionEvent): boolean => type.startsWith('user.')

/** A task gives the agent new work. */
export const isTaskEvent = ({ type }: SessionEvent): boolean =>
  type === 'user.message' || type === 'user.define_outcome'

export const isClientEvent = ({ type }: { type: string }): boolean =>
  type.startsWith('user.') || type.startsWith('system.')

// V8 creates an object whenever a regular expression literal is evaluated, so these patterns are constants.
// The objects were a third of the garbage of a long list.
const stopType = /^session\.(status_idle|status_terminated|deleted)$/
const replyType = /^user\.(tool_confirmation|tool_result|custom_tool_result)$|^agent\.(mcp_)?tool_result$/
const toolUseType = /^agent\.(|mcp_|custom_)tool_use$/

export const stopsSession = (event: SessionEvent): boolean =>
  stopType.test(event.type) && isMainThreadEvent(event)

export const startsAgentWork = ({ type }: SessionEvent): boolean =>
  type === 'session.status_running' || (isClientEvent({ type }) && type !== 'user.interrupt')

export const toolUseIdFields = ['tool_use_id', 'custom_tool_use_id', 'mcp_tool_use_id']

export const isReplyEventType = (type: string) => replyType.test(type)

export function getAnsweredToolUseId(event: SessionEvent): string | undefined {
  if (!isReplyEventType(event.type)) return undefined
  const field = toolUseIdFields.find((name) => typeof event[name] === 'string')
  return field === undefined ? undefined : (event[field] as string)
}

export const isToolUseEvent = ({ type }: SessionEvent): boolean => toolUseType.test(type)
