import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, readStopReason, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { type Judgement, judge, type Rules, readUse } from './judgement.ts'

/** A tool use that the policy denies, and that ran although no reply to it was seen. */
export interface Sighting {
  judgement: Judgement
  /** The service itself allowed it, so that there need not be a reply that the stream left out. */
  isCertain: boolean
}

/**
 * Finds the tool uses that a policy denies, but that the service ran. `denied` are those that have not been seen to run, by
 * id; it is changed. That one ran is known when its result came or, if the service allowed it itself, a rest that does not
 * list it: until then it may wait for a reply.
 */
export function findUnasked(
  denied: Map<string, Judgement>,
  { event, text }: EventItem,
  rules: Rules,
): Sighting[] {
  const { id = '', type } = event
  if (/^agent\.(mcp_)?tool_use$/.test(type)) {
    const use = readUse({ id, type, name: '', input: undefined, text })
    const judgement = use && use.permission !== 'deny' ? judge(use, rules) : undefined
    if (judgement?.decision === 'deny') denied.set(id, judgement)
    return []
  }
  const hasRun = isStop(event) ? hasRunAt(event) : hasRunBy(event)
  const found = [...denied.values()].filter(hasRun)
  for (const { use } of found) denied.delete(use.id)
  return found.map((judgement) => ({ judgement, isCertain: judgement.use.permission === 'allow' }))
}

/** A rest that does not say what it waits for may wait for anything. */
function hasRunAt(stop: SessionEvent): (judgement: Judgement) => boolean {
  const { type, eventIds } = readStopReason(stop)
  if (type === 'requires_action' && !eventIds) return () => false
  return ({ use: { id, permission } }) => permission === 'allow' && !eventIds?.includes(id)
}

function hasRunBy({ type, tool_use_id, mcp_tool_use_id }: SessionEvent): (judgement: Judgement) => boolean {
  if (!/^agent\.(mcp_)?tool_result$/.test(type)) return () => false
  return ({ use: { id } }) => id === (tool_use_id ?? mcp_tool_use_id)
}
