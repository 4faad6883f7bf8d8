import type { Context } from '../../context.ts'
import { CliError, convertDeadlineFailure } from '../../errors.ts'
import { formatResumeLines } from '../../io/failure.ts'
import { readEventText } from '../../wire/sessions/session-event.ts'
import type { WorkHooks } from '../../work-tracker.ts'
import { Follower } from '../following/follower.ts'
import { describeWorkflowRuns } from '../following/incidents.ts'
import { createFollowDeadlineError } from '../reconnect-policy.ts'
import { addSecretSource, explainFollowFailure, explainRefusedTask } from '../sending/delivery.ts'
import type { SessionClient } from '../session.ts'
import { createResumeCommand } from '../session-command.ts'
import { needsClientResult } from '../session-state.ts'
import type { Audit } from './audit.ts'
import type { RunPlan } from './plan.ts'
import { describeUnansweredCommand, listUnansweredCommands } from './unanswered-commands.ts'

type OtherTask = NonNullable<Follower['task']['otherTask']>

export const auditResumeHint =
  "to continue, run the same command with the same --audit again; it looks for the task in the session's event list for up to 30 s"

export const taskAcceptedText = 'the task was accepted'

/**
 * A run of `events run`: its access to the session, its audit file, its follower and its progress. The
 * progress determines the resume command that failures and signals print.
 */
export class SessionRun implements SessionClient, WorkHooks {
  readonly context: Context
  readonly caller: SessionClient['caller']
  readonly parts: SessionClient['parts']
  readonly plan: RunPlan
  readonly audit: Audit
  /**
   * After `accepted`, no failure may suggest sending the task again. `continued`: the run has no task, or
   * an earlier run sent it.
   */
  taskState: 'unsent' | 'accepted' | 'continued' = 'unsent'
  /**
   * State of the interrupt that a run posts if it exceeds a limit.
   *
   * - `unwanted`: the run is within its limits
   * - `wanted`: a limit is exceeded, so the run starts nothing new. The service has accepted no interrupt,
   *   because the run has posted none, or because the service refused it
   * - `unknown`: the run has posted the interrupt, and the service may have accepted it
   * - `accepted`: the service has accepted the interrupt
   */
  interrupt: 'unwanted' | 'wanted' | 'unknown' | 'accepted' = 'unwanted'
  hasStoppedFollowing = false
  /** Id of the last event before this run began to follow the session. */
  lastEarlierId: string | undefined
  readonly follower: Follower
  /** True after the run has read the list and sent its task, if it has one to send. */
  isFollowing = false

  constructor(context: Context, plan: RunPlan, audit: Audit) {
    const { caller, parts } = plan
    this.context = context
    this.caller = caller
    this.parts = {
      ...parts,
      deadline: parts.deadline.narrow(
        Infinity,
        'the session did not become idle within 30 s of the interrupt',
      ),
      requireLock: () => audit.requireLocks(),
    }
    this.plan = plan
    this.audit = audit
    this.follower = new Follower(this)
  }

  get session(): string {
    return this.parts.params.session
  }

  get isOverLimit(): boolean {
    return this.interrupt !== 'unwanted'
  }

  /** True if the service may have accepted the interrupt. */
  get hasSentInterrupt(): boolean {
    return this.interrupt === 'unknown' || this.interrupt === 'accepted'
  }

  /** True if the run starts no command and posts no reply any more. */
  get isEnding(): boolean {
    return this.isOverLimit || this.hasStoppedFollowing
  }

  createResumeCommand(): string[] {
    if (this.hasSentInterrupt) return this.#createCommandWithMessage()
    // `--after` names the task, because the first list of the resumed run may not show the task yet. For a run
    // without a task, `--after` makes the resumed run print the events since this run began. A run with a task
    // does not name the last earlier event, because that event may be another task.
    const isAudited = this.audit.hasFile && this.audit.task !== undefined
    const earlierId = this.plan.task ? undefined : this.lastEarlierId
    const after = isAudited ? undefined : (this.follower.task.id ?? this.plan.after ?? earlierId)
    const withoutTools = this.audit.hasFile ? [] : this.#unansweredCommands.map(({ use }) => use.name)
    return createResumeCommand(this.context, this.session, { after, withoutTools })
  }

  /**
   * Returns the command that resumes an interrupted session by a message. The message differs from the task
   * of this run, because with --audit parley does not send an equal task again.
   */
  #createCommandWithMessage(): string[] {
    const isSame = this.plan.task?.events.some((event) => /^Go on(?!,)/.test(readEventText(event)))
    const message = isSame ? 'Go on, please' : 'Go on'
    return createResumeCommand(this.context, this.session, { message })
  }

  get #unansweredCommands() {
    return listUnansweredCommands(this.audit, this.follower.state)
  }

  #describeUnansweredCommands(): string[] {
    return this.#unansweredCommands.map((each) => describeUnansweredCommand(this.context, each))
  }

  /** True if a second run would execute a started command again, because no audit file records the start. */
  get #repeatsCommands(): boolean {
    return !this.audit.hasFile && this.plan.task === undefined && this.#unansweredCommands.length > 0
  }

  describeRerun(): { mayDuplicate: boolean; retry?: 'look-first' } | undefined {
    if (this.#repeatsCommands) return { mayDuplicate: true, retry: 'look-first' }
    const isResumed = this.plan.task === undefined || this.audit.task?.is === 'accepted'
    return isResumed && !this.isOverLimit ? { mayDuplicate: false } : undefined
  }

  /**
   * False while nothing can be resumed: the task is unsent, or a run without a task does not follow the
   * session yet.
   */
  get #hasResume(): boolean {
    const { task, after } = this.plan
    return this.taskState !== 'unsent' && (this.isFollowing || task !== undefined || after !== undefined)
  }

  getResumeCommand(): string[] | undefined {
    return this.#hasResume ? this.createResumeCommand() : undefined
  }

  onInterrupt(): string | undefined {
    if (!this.#hasResume) return undefined
    const waits = this.isFollowing && this.follower.state.answerable.length > 0
    const what =
      this.interrupt === 'accepted' ? 'was sent an interrupt' : waits ? 'waits for an answer' : 'may continue'
    const { openRuns } = this.follower.state
    const open = openRuns.length > 0 ? [`open workflow runs: ${describeWorkflowRuns(openRuns)}`] : []
    const unanswered = this.#describeUnansweredCommands()
    const resumeText = formatResumeLines(this.createResumeCommand()).join('\n  ')
    const resume = [...open, ...unanswered, resumeText].join('; ')
    return this.taskState === 'continued' && !this.isFollowing ? resume : `the session ${what}; ${resume}`
  }

  explain(error: CliError): CliError {
    const isLate = this.taskState !== 'unsent' && this.context.deadline.hasPassed && error.kind === 'not-sent'
    const failure = isLate ? createFollowDeadlineError(error.message) : convertDeadlineFailure(error)
    const resumable =
      this.taskState === 'unsent'
        ? explainRefusedTask(this, failure, this.plan.task?.events ?? [], this.follower)
        : this.#addResumeCommand(failure)
    const lines = this.#describeUnansweredCommands()
    if (lines.length === 0) return resumable
    const { consequence = [], retry } = resumable.details
    const known = { consequence: lines.concat(consequence).join('\n') }
    return resumable.with({ ...known, retry: this.#repeatsCommands ? 'look-first' : retry })
  }

  createInterruptedError(why: string): CliError {
    return new CliError('stopped', why, {
      retry: 'never',
      resumeArguments: this.#createCommandWithMessage(),
    })
  }

  createOtherClientError(other: OtherTask): CliError {
    const why = describeOtherClientTask(other)
    if (!other.isInterrupted)
      return new CliError('response', `it is not known which message answers the task: ${why}`, {
        retry: 'never',
        consequence: `the messages: ${this.parts.inspectCommand}`,
      })
    return this.createInterruptedError(`${this.session} was interrupted: ${why}`)
  }

  #addResumeCommand(error: CliError): CliError {
    const { kind, details } = error
    const { retry = 'never', deadline, pendingToolUseIds } = details
    const resumeArguments = this.createResumeCommand()
    const isAudited = this.audit.hasFile
    if (kind === 'stopped') {
      // A run that sends no task may be repeated, unless it stopped at a limit and would stop there again.
      const unaudited = this.taskState === 'continued' ? retry : 'never'
      const consequence =
        deadline && !this.follower.state.stop ? `${this.session} may continue to work` : undefined
      return error.with({
        consequence,
        ...(deadline && this.isFollowing ? this.follower.describeWaitingToolUses() : {}),
        retry: isAudited && deadline ? 'later' : unaudited,
        resumeArguments: details.resumeArguments ?? resumeArguments,
      })
    }
    if (kind === 'waiting') {
      const tools = this.plan.policy.toolCommands
      const uses = pendingToolUseIds?.flatMap((id) => this.follower.state.getToolUse(id) ?? []) ?? []
      const lacksTool = tools.size > 0 && uses.some((use) => needsClientResult(use) && !tools.has(use.name))
      const hint = lacksTool ? `\n--tool has commands only for ${[...tools.keys()].join(', ')}` : ''
      const consequence = `${details.consequence}${hint}`
      return error.with({ consequence, resumeArguments, retry: isAudited ? 'later' : retry })
    }
    if (this.taskState === 'continued')
      return kind === 'response' && this.isFollowing ? error.with({ resumeArguments }) : error
    if (kind === 'unknown') return error.with({ retry: 'look-first' })
    if (kind === 'stuck') return error.with({ retry: 'never' })
    const accepted = { retry: 'never', resumeArguments, consequence: taskAcceptedText } as const
    // With an audit file, the same command resumes the run, so a script may retry after a transient failure.
    const canRetryLater = isAudited && retry !== 'never'
    // `pendingToolUseIds` means that the service refused a reply, which does not undo the task.
    if (pendingToolUseIds) {
      const consequence = addSecretSource(taskAcceptedText, error)
      return error.with({ ...accepted, consequence, retry: canRetryLater ? 'later' : 'never' })
    }
    if (kind === 'unexpected') return error.with({ ...accepted, consequence: details.consequence })
    const { inspectCommand } = this.parts
    if (kind === 'file')
      return error.with({ ...accepted, consequence: `${taskAcceptedText}; its events: ${inspectCommand}` })
    const unfollowed = explainFollowFailure(error, taskAcceptedText).with({
      retry: canRetryLater ? 'later' : 'never',
      resumeArguments,
    })
    // The message that parley could not follow the session fits only a failure while parley follows it.
    // An earlier failure concerns the response to the task. A failure after the session has stopped concerns
    // the answer. Both keep their own message.
    return this.isFollowing && !this.follower.state.stop ? unfollowed : unfollowed.with({}, error.message)
  }
}

export const describeOtherClientTask = ({ task: { id, type } }: OtherTask): string =>
  `another client sent a ${type}${id === undefined ? '' : ` (${id})`} after the task`
