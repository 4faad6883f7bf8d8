import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import {
  getAnsweredToolUseId,
  isToolUseEvent,
  readStopReason,
  type SessionEvent,
  stopsSession,
} from '../../wire/sessions/session-event.ts'
import { parseToolUse } from '../policy/tool-use.ts'
import { describeJudgement, describeToolUse, type Judgement, judgeToolUse } from './judgement.ts'
import type { SessionRun } from './session-run.ts'

/**
 * Collects the denials since the task: tool uses that any run or client denied, and tool uses that ran
 * although the policy denies them. After a denial, this run and later runs of the same task exit with 14.
 */
export class DenialCollector {
  readonly #run: SessionRun
  readonly #unapproved = new Map<string, string>()
  readonly #notRun = new Map<string, Judgement>()
  /**
   * Tool uses that ran although the policy denies them. Each is removed once the list shows whether a client
   * allowed it.
   */
  #ran: Judgement[] = []
  /** Last stop event, needed again if a later list adds tool uses before it that the stream omitted. */
  #lastStop: SessionEvent | undefined

  constructor(run: SessionRun) {
    this.#run = run
    run.context.reportData.figures.warnings.deniedButRan = () => this.#unapproved.size
  }

  async add(items: readonly EventItem[]): Promise<void> {
    const { audit, plan } = this.#run
    const { state } = this.#run.follower
    for (const { event, text } of items) {
      const { id = '', type } = event
      if (audit.denied.has(id)) continue
      if (stopsSession(event)) {
        // A list may add an older idle event late. Only the last idle event shows which tool uses ran.
        if (event.id !== undefined && id !== state.lastStop?.id) continue
        this.#lastStop = event
        this.#addRunBefore(event)
      } else if (/^agent\.(mcp_)?tool_use$/.test(type)) {
        const use = parseToolUse(text)
        const judgement = use.permission !== 'deny' ? await judgeToolUse(use, plan.policy) : undefined
        if (judgement?.decision === 'deny') this.#notRun.set(id, judgement)
        // The stream may have omitted the tool use. If the list already shows its result, it has run.
        if (state.getAnswer(id)) this.#addRun(id)
      } else if (type.startsWith('agent.')) this.#addRun(getAnsweredToolUseId(event))
    }
  }

  #addRun(id: string | undefined): void {
    const judgement = id === undefined ? undefined : this.#notRun.get(id)
    if (!judgement) return
    this.#notRun.delete(judgement.use.id)
    this.#ran.push(judgement)
  }

  /**
   * Adds the tool uses that ran before an idle event. The service allowed them (`evaluated_permission` is
   * `allow`), and the event does not list them as waiting. If the session waits for replies but the event
   * lists no tool use, adds none, because any may wait.
   */
  #addRunBefore(stop: SessionEvent): void {
    const { type, eventIds } = readStopReason(stop)
    if (type === 'requires_action' && !eventIds) return
    const waiting = new Set(eventIds)
    for (const [id, { use }] of this.#notRun)
      if (use.permission === 'allow' && !waiting.has(id)) this.#addRun(id)
  }

  /**
   * Warns about the tool uses since the task that ran without a reply although the policy denies them. The
   * stream may omit a reply, so only the list after an idle event (`isListed`) proves that no client replied.
   */
  reportUnapproved(isListed: boolean): void {
    const { audit, context } = this.#run
    const { state, task } = this.#run.follower
    if (isListed && this.#lastStop) this.#addRunBefore(this.#lastStop)
    this.#ran = this.#ran.filter(({ use }) => !state.getAnswer(use.id)?.isReply)
    if (this.#ran.length === 0) return
    // In an idle session, a tool use of a child thread may still wait, so it is not reported yet.
    const pending = new Set(state.pendingInThreads)
    const isKnown = ({ use }: Judgement) => !pending.has(use.id) && (isListed || use.permission === 'allow')
    const known = this.#ran.filter(isKnown)
    if (known.length === 0) return
    const uses = task.findToolUses(known.map(({ use }) => use.id))
    const unapproved = known.filter(({ use }) => uses.has(use.id))
    this.#ran = this.#ran.filter((judgement) => !isKnown(judgement))
    for (const judgement of unapproved) {
      const { use } = judgement
      this.#unapproved.set(use.id, describeJudgement(judgement))
      audit.addUnapproved(judgement)
      context.messages.warn(`the service ran a tool use that the policy denies: ${describeToolUse(use)}`)
    }
  }

  createFailure(): CliError | undefined {
    const { task } = this.#run.follower
    const uses = readToolUseIds(task.readEvents())
    const denied = this.#readDeniedByOthers()
    for (const judgement of this.#run.audit.judgements.values()) {
      const { use, decision } = judgement
      if (decision === 'deny' && (uses.has(use.id) || task.hasOwnTask))
        denied.set(use.id, describeJudgement(judgement))
    }
    const unapproved = new Map([...this.#unapproved].filter(([id]) => uses.has(id)))
    if (denied.size + unapproved.size === 0) return undefined
    const count = ({ size }: Map<string, string>) => `${size} tool ${size === 1 ? 'use' : 'uses'}`
    const what = [
      ...(denied.size > 0 ? [`${count(denied)} denied`] : []),
      ...(unapproved.size > 0 ? [`${count(unapproved)} that ran despite the policy`] : []),
    ]
    return new CliError('denied', `${this.#run.session} finished with ${what.join(', and with ')}`, {
      sent: 'yes',
      problems: [...denied.values(), ...unapproved.values()],
    })
  }

  #readDeniedByOthers(): Map<string, string> {
    const denied = new Map<string, string>()
    for (const event of this.#run.follower.task.readEvents()) {
      const { id, type, tool_use_id: use, result } = event
      const earlier = isToolUseEvent(event) && id !== undefined ? this.#run.audit.denied.get(id) : undefined
      if (id !== undefined && earlier !== undefined) denied.set(id, earlier)
      if (type !== 'user.tool_confirmation' || typeof use !== 'string') continue
      if (result !== 'deny') denied.delete(use)
      else if (!denied.has(use)) denied.set(use, `deny ${use} (by another client or run)`)
    }
    return denied
  }
}

function readToolUseIds(events: Iterable<SessionEvent>): ReadonlySet<string> {
  const ids = new Set<string>()
  for (const event of events) if (isToolUseEvent(event)) ids.add(event.id ?? '')
  return ids
}
