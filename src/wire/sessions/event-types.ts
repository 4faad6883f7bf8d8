import { suggestSpelling } from '../../argv/spelling.ts'

/** Event types that a client may send (src/wire/README.md: session events, 2.2). */
export const sendableEventTypes = [
  'user.message',
  'user.interrupt',
  'user.tool_confirmation',
  'user.custom_tool_result',
  'user.define_outcome',
  'user.tool_result',
  'system.message',
] as const

export type SendableEventType = (typeof sendableEventTypes)[number]

export const sessionStatuses = ['idle', 'running', 'rescheduling', 'terminated']

/** The service may also send other types (src/wire/README.md: public clients, 4 and 10). */
const serviceEventTypes = [
  'agent.message',
  'agent.thinking',
  'agent.tool_use',
  'agent.mcp_tool_use',
  'agent.custom_tool_use',
  'agent.tool_result',
  'agent.mcp_tool_result',
  'agent.thread_message_sent',
  'agent.thread_message_received',
  'session.status_running',
  'session.status_idle',
  'session.status_rescheduled',
  'session.status_terminated',
  'session.error',
  'session.deleted',
  'session.updated',
  'session.usage',
  'session.thread_created',
  'session.thread_status_running',
  'session.thread_status_idle',
  'session.thread_status_rescheduled',
  'session.thread_status_terminated',
  'workflow_run.created',
  'workflow_run.status_running',
  'workflow_run.status_idle',
  'workflow_run.status_ended',
  'workflow_run.phase_started',
  'workflow_run.phase_ended',
  'workflow_run.error',
  'span.model_request_end',
  'span.outcome_evaluation_start',
  'span.outcome_evaluation_ongoing',
  'span.outcome_evaluation_end',
]

export const knownEventTypes: readonly string[] = [...sendableEventTypes, ...serviceEventTypes]

/**
 * Returns a suggestion such as ` (did you mean user.message?)`, or an empty text. Prefers a known type that
 * has all words of the unknown type.
 */
export function suggestEventType(type: string): string {
  const words = type.toLowerCase().split(/[._]/)
  const fuller = knownEventTypes.find((known) => words.every((word) => known.split(/[._]/).includes(word)))
  return fuller === undefined ? suggestSpelling(type, knownEventTypes) : ` (did you mean ${fuller}?)`
}
