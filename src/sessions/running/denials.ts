import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isToolUseEvent, readStopReason } from '../../wire/sessions/session-event.ts'
import { isFollowedTask } from '../following/followed-task.ts'
import { type ParsedToolUse, parseToolUse } from '../policy/tool-use.ts'
import type { SessionState } from '../session-state.ts'
import type { Audit } from './audit.ts'
import { describeToolUse, type Judgement, judgeToolUse } from './judgement.ts'
import type { SessionRun } from './session-run.ts'

/**
 * Collects the denials since the task: tool uses that any run or client denied, and tool uses that ran
 * although the policy denies them. After a denial, this run and later runs of the same task exit with 14.
 */
export class DenialCollector {
  readonly #run: SessionRun
  #unapprovedCount = 0
  /** Tool uses that the policy denies, by id. A tool use is removed once it has run or has a reply. */
  readonly #open = new Map<string, Judgement>()

  constructor(run: SessionRun) {
    this.#run = run
    run.context.reportData.figures.warnings.deniedButRan = () => this.#unapprovedCount
  }

  /** Adds earlier events. Only tool uses since the followed task count (`isFollowedTask`). */
  async addEarlier(items: readonly EventItem[], ownIds?: ReadonlySet<string>): Promise<void> {
    for (const item of items) {
      if (isFollowedTask(item.event, ownIds)) this.#open.clear()
      await this.add([item])
    }
  }

  async add(items: readonly EventItem[]): Promise<void> {
    const { audit, plan } = this.#run
    for (const { event, text } of items) {
      if (!/^agent\.(mcp_)?tool_use$/.test(event.type) || audit.denied.has(event.id ?? '')) continue
      const use = parseToolUse(text)
      const judgement = use.permission === 'deny' ? undefined : await judgeToolUse(use, plan.policy)
      if (judgement?.decision === 'deny') this.#open.set(use.id, judgement)
    }
  }

  /**
   * Warns about the tool uses since the task that ran without a reply although the policy denies them. The
   * stream may omit a reply, so only the list after an idle event (`isListed`) proves that no client replied.
   */
  reportUnapproved(isListed: boolean): void {
    const { audit, context } = this.#run
    const { state } = this.#run.follower
    for (const id of this.#open.keys()) if (state.getAnswer(id)?.isReply) this.#open.delete(id)
    if (this.#open.size === 0) return
    // In an idle session, a tool use of a child thread may still wait, so it is not reported yet.
    const pending = new Set(state.pendingInThreads)
    const ran = [...this.#open.values()].filter(
      ({ use }) => !pending.has(use.id) && (isListed || use.permission === 'allow') && hasRun(state, use),
    )
    for (const judgement of ran) {
      const { use } = judgement
      this.#open.delete(use.id)
      this.#unapprovedCount++
      audit.addUnapproved(judgement)
      context.messages.warn(`the service ran a tool use that the policy denies: ${describeToolUse(use)}`)
    }
  }

  createFailure(): CliError | undefined {
    const { audit, follower, session } = this.#run
    const denied: Audit['denied'] = new Map()
    for (const event of follower.task.readEvents()) {
      const { id = '', type, tool_use_id: use, result } = event
      const recorded = isToolUseEvent(event) ? audit.denied.get(id) : undefined
      if (recorded !== undefined) denied.set(id, recorded)
      if (type !== 'user.tool_confirmation' || typeof use !== 'string') continue
      if (result !== 'deny') denied.delete(use)
      else if (!denied.has(use)) {
        const known = follower.state.getToolUse(use)
        const name = known ? describeToolUse({ ...known, inputText: '' }) : use
        denied.set(use, { hasRun: false, text: `deny ${name} (by another client or run)` })
      }
    }
    // The denials of this run also count if they precede the task, or if another client then allowed the tool use.
    for (const [id, decision] of audit.effective) {
      const recorded = audit.denied.get(id)
      if (decision === 'deny' && recorded !== undefined) denied.set(id, recorded)
    }
    if (denied.size === 0) return undefined
    const were = denied.size === 1 ? 'tool use was' : 'tool uses were'
    const denials = [...denied.values()]
    const orRan = denials.some(({ hasRun }) => hasRun) ? ' or ran despite the policy' : ''
    return new CliError('denied', `${session} finished, but ${denied.size} ${were} denied${orRan}`, {
      problems: denials.map(({ text }) => text),
    })
  }
}

/**
 * Returns whether the service ran a tool use. A tool use has run if it has an answer, or if the service
 * allowed it and the idle session does not wait for it. If the idle session waits for replies but lists no
 * tool use, it may wait for any.
 */
function hasRun(state: SessionState, { id, permission }: ParsedToolUse): boolean {
  if (state.getAnswer(id) || state.getToolUse(id)?.isFinished) return true
  if (permission !== 'allow' || !state.isIdle || !state.lastStop) return false
  const { type, eventIds } = readStopReason(state.lastStop)
  return eventIds ? !eventIds.includes(id) : type !== 'requires_action'
}
