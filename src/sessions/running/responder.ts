import { isUtf8 } from 'node:buffer'
import type { Deadline } from '../../deadline.ts'
import { CliError } from '../../errors.ts'
import { runCommand } from '../../io/command.ts'
import { toOneLine } from '../../io/escape.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { ConfirmationPrompt, canPrompt, describePromptObstacle } from '../confirming/confirmation-prompt.ts'
import type { ParsedToolUse } from '../policy/tool-use.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import { requireTimeLeft } from '../reconnect-policy.ts'
import { createConfirmationEvent, createToolResultEvent } from '../reply-events.ts'
import type { SessionClient } from '../session.ts'
import { getToolUseFingerprint } from '../session-state.ts'
import { formatReason, getToolUseExecutor, type Judgement, judgeToolUse } from './judgement.ts'
import {
  applyDecision,
  closeObsoleteReplies,
  closeRemainingReplies,
  filterWaitingToolUses,
  findNextReplyStep,
  findToolUse,
  pollUnconfirmedReplies,
  postReplies,
  refreshUntil,
} from './replies.ts'
import { interruptedCommandResult, minPollTimeoutMs } from './reply-state.ts'
import type { SessionRun } from './session-run.ts'

type ToolUseReply = SessionEvent | 'result of a command'

const unsafeIdText = 'events run answers only tool uses whose id has 1 to 128 letters, digits, _ or -'

/**
 * Replies to the waiting tool uses of a session by policy rules, `--tool` commands and prompts. Works
 * concurrently with the loop that follows the session, and reads the newest events before each step.
 */
export class ToolUseResponder {
  readonly #run: SessionRun
  readonly #prompt: ConfirmationPrompt
  #work: Promise<void> | undefined
  #failure: { error: unknown } | undefined
  #openQuestions: readonly Judgement[] = []
  #commandCount = 0

  constructor(run: SessionRun) {
    this.#run = run
    this.#prompt = new ConfirmationPrompt(run.context, run.parts.inspectCommand)
    run.audit.resumeReplies(new Set(run.follower.state.stopIds))
    const countOf = (wanted: Judgement['decision']) =>
      [...run.audit.effective.values()].filter((decision) => decision === wanted).length
    run.context.reportData.figures.toolUses = () => {
      const { stop, answerable } = run.follower.state
      return {
        allowed: countOf('allow'),
        denied: countOf('deny'),
        run: this.#commandCount,
        failedCommands: run.audit.failedCommands.size,
        open: (stop?.kind === 'waiting' ? stop.ids : answerable).length,
      }
    }
  }

  /**
   * Called after each change of the session. Starts to reply to the waiting tool uses, and withdraws
   * questions about tool uses that no longer wait. Throws the failure of an earlier reply.
   */
  update(): void {
    if (this.#failure) throw this.#failure.error
    const open = closeObsoleteReplies(this.#run, this.#openQuestions)
    for (const question of this.#openQuestions)
      if (!open.includes(question)) this.#prompt.withdraw(question.use.id)
    this.#openQuestions = open
    if (this.#work) return
    if (this.#listDueIds().length === 0) return
    const { state } = this.#run.follower
    state.isReplying = true
    this.#work = this.#replyToAll()
      .catch((error: unknown) => {
        this.#failure = { error }
      })
      .finally(() => {
        this.#work = undefined
        state.isReplying = false
        this.#run.follower.wake()
      })
  }

  stop(): void {
    this.#run.hasStoppedFollowing = true
    for (const { use } of this.#openQuestions) this.#prompt.withdraw(use.id)
  }

  async finish(): Promise<void> {
    do {
      await this.#work
      this.update()
    } while (this.#work)
    if (this.#run.hasStoppedFollowing) closeRemainingReplies(this.#run)
  }

  /** See `ConfirmationPrompt`. The failure of a refused reply already reports what happened to the answer. */
  reportLostDuring<T>(work: () => Promise<T>): Promise<T> {
    return this.#prompt.reportLostDuring(work, (id, failure) => {
      const isRefused = failure?.kind !== 'stopped' && failure?.details.pendingToolUseIds?.includes(id)
      return !isRefused && this.#run.audit.getReply(id).is === 'deciding'
    })
  }

  close(): void {
    this.#prompt.close()
  }

  #listDueIds(): string[] {
    return this.#run.isEnding
      ? []
      : this.#run.follower.state.answerable.filter((id) => findNextReplyStep(this.#run, id) !== undefined)
  }

  async #replyToAll(): Promise<void> {
    const { audit, context, parts } = this.#run
    // The lists of this run may not show yet what the stream of an earlier run has shown.
    const passedMs = context.host.timers.wallTime() - audit.answeredElsewhereAt
    await parts.deadline.wait(minPollTimeoutMs - Math.max(passedMs, 0))
    // If the clock was set back, the time stays in the future.
    audit.answeredElsewhereAt = -Infinity
    for (let uses = await this.#listDue(); uses.length > 0; uses = await this.#listDue())
      await this.#reply(uses)
  }

  async #reply(uses: readonly ParsedToolUse[]): Promise<void> {
    const filterByStep = (step: string) => uses.filter(({ id }) => findNextReplyStep(this.#run, id) === step)
    const [withResult, unconfirmed] = [filterByStep('post'), filterByStep('poll')]
    for (const use of withResult) this.#warnOfInterrupted(use)
    const decided = await this.#decide(filterByStep('decide'))
    const replies = withResult.flatMap((use) => this.#createResultReply(use))
    const commands: { use: ParsedToolUse }[] = []
    for (const { use, reply } of decided)
      if (reply === 'result of a command') commands.push({ use })
      else replies.push({ use, event: reply })
    await postReplies(this.#run, replies)
    for (const command of commands) {
      if (this.#run.isEnding) break
      if ((await filterWaitingToolUses(this.#run, [command])).length === 0) continue
      // Reading the list may have shown that a limit is exceeded. The run then starts no command.
      if (this.#run.isEnding) break
      await this.#execute(command.use)
      await postReplies(this.#run, this.#createResultReply(command.use))
    }
    // The replies above may lead to an idle event that shows whether unconfirmed replies arrived, so this
    // check comes last.
    await pollUnconfirmedReplies(this.#run, unconfirmed)
  }

  async #listDue(): Promise<ParsedToolUse[]> {
    // The stream may omit tool uses, so parley lists the events until it has every tool use that needs a
    // reply.
    const isKnown = (id: string) => !isSafeId(id) || findToolUse(this.#run, id) !== undefined
    await refreshUntil(this.#run, () => this.#listDueIds().every(isKnown))
    return this.#listDueIds().flatMap((id) => {
      const use = isSafeId(id) ? findToolUse(this.#run, id) : undefined
      if (use) return [use]
      // The audit file gets no line, so that the next run decides about the tool use again.
      this.#run.audit.replies.set(id, { is: 'left-open' })
      const why = isSafeId(id) ? 'the session does not show this tool use' : unsafeIdText
      this.#run.context.messages.note(`${quoteAndShortenName(id)} is not answered: ${why}`)
      return []
    })
  }

  /** Decides about tool uses and records each decision. Returns the replies to send. */
  async #decide(uses: readonly ParsedToolUse[]): Promise<{ use: ParsedToolUse; reply: ToolUseReply }[]> {
    const judged: Judgement[] = []
    for (const use of uses) judged.push(await judgeToolUse(use, this.#run.plan.policy))
    const questions = canPrompt(this.#run.context) ? judged.filter((each) => this.#needsPrompt(each)) : []
    const asked = questions.length > 0 ? await this.#ask(questions) : undefined
    const judgements = judged.flatMap((judgement): Judgement | [] => {
      const decided = asked?.decisions.get(judgement.use.id)
      if (decided) return { use: judgement.use, ...decided, by: 'person' }
      return asked?.withdrawn.includes(judgement) ? [] : judgement
    })
    const open = await filterWaitingToolUses(this.#run, judgements)
    return open.flatMap((judgement) => {
      const reply = this.#chooseReply(judgement)
      this.#run.audit.addDecision(judgement, reply === undefined)
      if (reply !== undefined) return { use: judgement.use, reply }
      this.#printOpen(judgement)
      return []
    })
  }

  /**
   * parley does not prompt about a tool use that a run cannot allow: it has two inputs, or another client
   * executes it.
   */
  #needsPrompt({ use, decision }: Judgement): boolean {
    return (
      decision === 'ask' &&
      !use.isContradicted &&
      getToolUseExecutor(use, this.#run.plan.policy) !== 'other-client'
    )
  }

  async #ask(questions: readonly Judgement[]) {
    this.#openQuestions = questions
    try {
      const decisions = await this.#prompt.ask(
        questions.map(({ use, mismatchReason }) => {
          return { ...use, mismatchReason, sameCallKey: getSameCallKey(use) }
        }),
      )
      return { decisions, withdrawn: questions.filter((each) => !this.#openQuestions.includes(each)) }
    } finally {
      this.#openQuestions = []
    }
  }

  #printOpen(judgement: Judgement): void {
    const { use, decision, reason } = judgement
    const { context, follower, plan } = this.#run
    const { host, input, messages } = context
    const needsApproval =
      plan.policy.toolCommands?.has(use.name) && getToolUseExecutor(use, plan.policy) === 'service'
    // The failure at the end of the run lists the waiting tool uses, so a script needs no note then. While other
    // threads work, the end may be far away.
    const isAtEnd = !host.stderr.isTerminal && input.stdinKind !== 'terminal' && follower.state.isIdle
    if (isAtEnd && !needsApproval) return
    const obstacle =
      this.#needsPrompt(judgement) && !canPrompt(context) ? describePromptObstacle(context) : undefined
    const why = needsApproval
      ? "--tool does not answer it, because it needs an approval: use --policy or 'parley events confirm'"
      : decision === 'allow'
        ? 'no --tool command executes this tool'
        : (reason ?? obstacle)
    messages.note(`${use.id} (${quoteAndShortenName(use.name)}) stays open${formatReason(why)}`)
  }

  #chooseReply({ use, decision, reason }: Judgement): ToolUseReply | undefined {
    if (decision === 'ask') return undefined
    const executor = getToolUseExecutor(use, this.#run.plan.policy)
    if (executor === 'service') return createConfirmationEvent(use.id, decision, reason)
    if (decision === 'deny') return createToolResultEvent(use, { text: reason ?? 'denied', isError: true })
    return executor === 'tool-command' ? 'result of a command' : undefined
  }

  #createResultReply(use: ParsedToolUse) {
    const { is, result } = this.#run.audit.getReply(use.id)
    return is === 'has-result' ? [{ use, event: createToolResultEvent(use, result) }] : []
  }

  async #execute(use: ParsedToolUse): Promise<void> {
    const { audit, parts, plan } = this.#run
    const { deadline } = parts
    const { policy, toolTimeoutMs } = plan
    requireTimeLeft(deadline)
    audit.addReplyStep(use, { event: 'start' })
    applyDecision(this.#run, use.id)
    const limit = deadline.narrow(toolTimeoutMs, `did not end within ${toolTimeoutMs / 1000} s`)
    const result = await runTool(this.#run, use, policy.toolCommands?.get(use.name) ?? '', limit)
    const isLate = deadline.hasPassed
    if (!(isLate && result.isError)) {
      this.#commandCount++
      audit.addReplyStep(use, { event: 'end', result })
      // The agent gets the whole result. The warning contains only the first two lines.
      const [what, first = ''] = result.text.split('\n', 2)
      if (result.isError)
        this.#run.context.messages.warn(describeFailure(use, toOneLine(`${what} ${first}`, 500)))
    }
    if (isLate)
      throw new CliError('stopped', `the deadline passed while the command for ${use.name} ran`, {
        deadline: true,
      })
  }

  /** Warns about a command that ran when an earlier run was killed, because that run could not warn. */
  #warnOfInterrupted(use: ParsedToolUse): void {
    if (this.#run.audit.getReply(use.id).result !== interruptedCommandResult) return
    const what = `an earlier run ended while the command ran: ${interruptedCommandResult.text}`
    this.#run.context.messages.warn(describeFailure(use, what))
  }
}

const describeFailure = ({ id, name }: ParsedToolUse, what: string): string =>
  `the tool use ${id} failed (${quoteAndShortenName(name)}): ${what}`

const isSafeId = (id: string): boolean => /^[\w-]{1,128}$/.test(id)

/**
 * Returns `undefined` for an unclear input. The key `a` (always allow) then does not apply to later tool uses
 * with this input.
 */
const getSameCallKey = (use: ParsedToolUse): string | undefined =>
  use.isUnclear ? undefined : getToolUseFingerprint(use, use.text)

const maxStderrLines = 20

async function runTool(
  { context, parts }: SessionClient,
  use: ParsedToolUse,
  command: string,
  deadline: Deadline,
) {
  // The variables PARLEY_* may contain secrets, so commands do not get them.
  const variables = Object.entries(context.host.env).filter(([variable]) => !/^parley_/i.test(variable))
  const env = {
    ...Object.fromEntries(variables),
    PARLEY_TOOL_NAME: use.name,
    PARLEY_TOOL_USE_ID: use.id,
    PARLEY_SESSION: parts.params.session,
  }
  const { stdout, stderr, problem } = await runCommand(
    { text: command, env, input: use.inputText, isGroupLeader: true, deadline },
    context,
  )
  const why = problem ?? (isUtf8(stdout) ? undefined : 'printed text that is not UTF-8')
  if (why === undefined) return { text: stdout.toString(), isError: false }
  return { text: `the command ${why}${formatLastLines(stderr)}`, isError: true }
}

function formatLastLines(stderr: string): string {
  const lines = stderr.trim().split(/\r?\n/).slice(-maxStderrLines).join('\n')
  return lines === '' ? '' : `:\n${lines}`
}
