import { formatPath } from '../wire/json/parse.ts'
import type { SessionEvent } from '../wire/sessions/session-event.ts'
import { readString } from './sessions/agent-words.ts'

/** What each kind of answer may answer, and by which field it names it. */
const answers = new Map([
  ['user.tool_confirmation', { field: 'tool_use_id', uses: ['agent.tool_use', 'agent.mcp_tool_use'] }],
  ['user.tool_result', { field: 'tool_use_id', uses: ['agent.tool_use'] }],
  ['user.custom_tool_result', { field: 'custom_tool_use_id', uses: ['agent.custom_tool_use'] }],
])

/**
 * Why events cannot be taken although each is right in itself: an answer is of the wrong kind for its tool use, or
 * from another thread (session events, 2.2 and 6). An id that nobody knows passes.
 */
export function findMisfit(
  events: readonly ({ type: string } & Record<string, unknown>)[],
  toolUse: (id: string) => SessionEvent | undefined,
): string | undefined {
  for (const [index, event] of events.entries()) {
    const answer = answers.get(event.type)
    const use = answer && toolUse(readString(event[answer.field]))
    if (!use) continue
    const tell = (field: string, what: string) => `${formatPath(['events', index, field])}: ${what}`
    if (!answer.uses.includes(use.type))
      return tell(answer.field, `is an ${use.type}, not ${answer.uses.join(' or ')}`)
    const { session_thread_id: thread } = event
    if (thread != null && thread !== use.session_thread_id)
      return tell('session_thread_id', 'is not the thread that the tool use came from')
  }
  return undefined
}
