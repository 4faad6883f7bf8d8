import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isStop, readStopReason } from '../../wire/sessions/session-event.ts'
import { readCall } from './call.ts'
import { judge, type Rules, type Verdict } from './verdict.ts'

/** Finds the tool uses that a policy denies, but that the service ran without asking anybody. */
export class Unasked {
  readonly #rules: Rules
  /** Tool uses that the session has asked about. */
  readonly #asked = new Set<string>()
  /** Denied ones that were not asked about, by id. */
  readonly #denied = new Map<string, Verdict>()

  constructor(rules: Rules) {
    this.#rules = rules
  }

  /** Adds what was there before: only questions count. */
  addPast(items: readonly EventItem[]): void {
    for (const { event } of items) {
      if (event.type !== 'session.status_idle') continue
      for (const id of readStopReason(event).eventIds ?? []) this.#asked.add(id)
    }
  }

  /** Returns those that are found to run, or to have run, each once. */
  add(items: readonly EventItem[]): Verdict[] {
    return items.flatMap((item) => {
      this.addPast([item])
      const { type } = item.event
      if (/^agent\.(mcp_)?tool_use$/.test(type)) return this.#addUse(item)
      if (isStop(item.event)) return this.#addStop()
      return /^agent\.(mcp_)?tool_result$/.test(type) ? this.#addResult(item) : []
    })
  }

  #addUse({ event: { id = '', type }, text }: EventItem): Verdict[] {
    const call = readCall({ id, type, name: '', input: undefined, text })
    if (!call || call.permission === 'ask' || call.permission === 'deny') return []
    const verdict = judge(call, this.#rules)
    if (verdict.decision !== 'deny') return []
    // With a command for it here it may wait for that.
    if (call.permission === 'allow' && !this.#rules.tools.has(call.name)) return [verdict]
    this.#denied.set(id, verdict)
    return []
  }

  /** What the service allowed itself, and does not wait for, runs. */
  #addStop(): Verdict[] {
    const running = [...this.#denied.values()].filter(
      ({ call: { id, permission } }) => permission === 'allow' && !this.#asked.has(id),
    )
    for (const { call } of running) this.#denied.delete(call.id)
    return running
  }

  #addResult({ event }: EventItem): Verdict[] {
    const id = event.tool_use_id ?? event.mcp_tool_use_id
    const verdict = typeof id === 'string' && !this.#asked.has(id) ? this.#denied.get(id) : undefined
    if (!verdict) return []
    this.#denied.delete(verdict.call.id)
    return [verdict]
  }
}
