import { didYouMean } from '../../argv/spelling.ts'

/** The types of events that a client may send (session events, 2.2). */
export const sentTypes = [
  'user.message',
  'user.interrupt',
  'user.tool_confirmation',
  'user.custom_tool_result',
  'user.define_outcome',
  'user.tool_result',
  'system.message',
]

/** All that are documented (public clients, 4); a service has others too. */
export const eventTypes = [
  ...sentTypes,
  'agent.message',
  'agent.thinking',
  'agent.tool_use',
  'agent.mcp_tool_use',
  'agent.custom_tool_use',
  'agent.tool_result',
  'agent.mcp_tool_result',
  'session.status_running',
  'session.status_idle',
  'session.status_rescheduled',
  'session.status_terminated',
  'session.error',
  'session.deleted',
]

/** The known type that an unknown one most likely means, as `didYouMean` says it; it may lack words of the known one. */
export function nearestType(type: string): string {
  const words = type.toLowerCase().split(/[._]/)
  const fuller = eventTypes.find((known) => words.every((word) => known.split(/[._]/).includes(word)))
  return fuller === undefined ? didYouMean(type, eventTypes) : ` (did you mean ${fuller}?)`
}
