import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, readStopReason, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { type Judgement, judge, type Rules, readUse } from './judgement.ts'

/** A tool use that the policy denies, and that ran although no reply to it was seen. */
export interface Sighting {
  judgement: Judgement
  /** The service itself allowed it. Otherwise the stream may have left out a reply. */
  isCertain: boolean
}

/** Tool uses that a policy denies, and that have not been seen to run, by id. */
export interface Denied {
  /** The service itself allowed them. */
  allowed: Map<string, Judgement>
  others: Map<string, Judgement>
}

/**
 * Finds the tool uses that a policy denies, but that the service ran; changes `denied`. A tool use ran if its result
 * comes or, if the service itself allowed it, a rest that does not list it. Before that it may wait for a reply.
 */
export async function findUnasked(
  denied: Denied,
  { event, text }: EventItem,
  rules: Rules,
): Promise<Sighting[]> {
  const { id = '', type } = event
  if (/^agent\.(mcp_)?tool_use$/.test(type)) {
    const use = readUse({ id, type, text })
    const judgement = use && use.permission !== 'deny' ? await judge(use, rules) : undefined
    if (judgement?.decision === 'deny') addDenied(denied, judgement)
    return []
  }
  if (isStop(event)) return takeAll(denied.allowed, runAt(event, denied.allowed), true)
  const ran = runBy(event)
  return [...takeAll(denied.allowed, ran, true), ...takeAll(denied.others, ran, false)]
}

function addDenied({ allowed, others }: Denied, judgement: Judgement): void {
  const { id, permission } = judgement.use
  const [its, other] = permission === 'allow' ? [allowed, others] : [others, allowed]
  other.delete(id)
  its.set(id, judgement)
}

/** Removes these ids from a map, and returns those that it had. */
function takeAll(from: Map<string, Judgement>, ids: readonly string[], isCertain: boolean): Sighting[] {
  const found = ids.flatMap((id) => from.get(id) ?? [])
  for (const id of ids) from.delete(id)
  return found.map((judgement) => ({ judgement, isCertain }))
}

/** The tool uses that ran before a rest. A rest without a list may wait for any of them. */
function runAt(stop: SessionEvent, allowed: ReadonlyMap<string, Judgement>): string[] {
  const { type, eventIds } = readStopReason(stop)
  if (type === 'requires_action' && !eventIds) return []
  const waiting = new Set(eventIds)
  return [...allowed.keys()].filter((id) => !waiting.has(id))
}

function runBy({ type, tool_use_id, mcp_tool_use_id }: SessionEvent): string[] {
  const id = tool_use_id ?? mcp_tool_use_id
  return /^agent\.(mcp_)?tool_result$/.test(type) && typeof id === 'string' ? [id] : []
}
