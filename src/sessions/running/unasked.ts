import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, readStopReason, type SessionEvent } from '../../wire/sessions/session-event.ts'
import type { SessionState } from '../session-state.ts'
import { readCall } from './call.ts'
import { judge, type Rules, type Verdict } from './verdict.ts'

/** A tool use that the policy denies, and that ran although this stream showed no reply to it. */
export interface Sighting {
  verdict: Verdict
  /** The service itself allowed it: there need not be a reply that the stream left out. */
  isCertain: boolean
}

/**
 * Finds the tool uses that a policy denies, but that ran without a reply. That one ran is known when its result came, or,
 * if the service allowed it itself, a rest that does not list it: until then it may wait for a reply.
 */
export class Unasked {
  readonly #rules: Rules
  /** Denied ones that have not been seen to run. */
  readonly #denied = new Map<string, Verdict>()

  constructor(rules: Rules) {
    this.#rules = rules
  }

  /** Returns those that are found to have run, each once. `state` knows the items already. */
  add(items: readonly EventItem[], state: SessionState): Sighting[] {
    return items
      .flatMap((item) => this.#addItem(item))
      .filter(({ verdict: { call } }) => !state.hasReply(call.id))
  }

  #addItem({ event, text }: EventItem): Sighting[] {
    const { id = '', type } = event
    if (/^agent\.(mcp_)?tool_use$/.test(type)) {
      const call = readCall({ id, type, name: '', input: undefined, text })
      const verdict = call && call.permission !== 'deny' ? judge(call, this.#rules) : undefined
      if (verdict?.decision === 'deny') this.#denied.set(id, verdict)
      return []
    }
    const isOver = isStop(event) ? isOverAt(event) : isOverByResult(event)
    const found = [...this.#denied.values()].filter(isOver)
    for (const { call } of found) this.#denied.delete(call.id)
    return found.map((verdict) => ({ verdict, isCertain: verdict.call.permission === 'allow' }))
  }
}

/** A rest that does not say what it waits for may wait for anything. */
function isOverAt(stop: SessionEvent): (verdict: Verdict) => boolean {
  const { type, eventIds } = readStopReason(stop)
  if (type === 'requires_action' && !eventIds) return () => false
  return ({ call: { id, permission } }) => permission === 'allow' && !eventIds?.includes(id)
}

function isOverByResult({ type, tool_use_id, mcp_tool_use_id }: SessionEvent): (verdict: Verdict) => boolean {
  if (!/^agent\.(mcp_)?tool_result$/.test(type)) return () => false
  return ({ call: { id } }) => id === (tool_use_id ?? mcp_tool_use_id)
}
