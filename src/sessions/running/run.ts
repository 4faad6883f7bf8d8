import type { CommandResult, Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { toOneLine } from '../../io/escape.ts'
import { ignoreClosedReader, requireOpenStdout } from '../../io/output.ts'
import { askYesNo, withPrompter } from '../../io/question.ts'
import { addSavedDataToFailure } from '../../io/saved-data.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { listOtherBlockTypes } from '../../wire/sessions/session-event.ts'
import { canPrompt } from '../confirming/confirmation-prompt.ts'
import { SessionIncidents } from '../following/incidents.ts'
import { createEventPrinter, followAndPrint, missingAnswerText } from '../following/transcript.ts'
import { rethrowAsNotSent } from '../sending/delivery.ts'
import { Audit } from './audit.ts'
import { DenialCollector } from './denials.ts'
import type { RunPlan } from './plan.ts'
import { ToolUseResponder } from './responder.ts'
import { LimitEnforcer } from './run-limits.ts'
import { findEarlierTask, sendTask } from './sent-task.ts'
import { describeOtherClientTask, SessionRun } from './session-run.ts'
import { addListedEvent, createListFacts, findRepetition } from './task.ts'
import {
  checkTaskAnswer,
  isAnswerPrintedAlone,
  printOrSaveTaskAnswer,
  saveTaskAnswer,
} from './task-answer.ts'

/**
 * Sends a task, or continues a session, and replies to tool uses until the agent has finished. Throws a
 * `CliError` if the agent does not finish, for example of kind `waiting` or `stopped`.
 */
export async function runTask(context: Context, plan: RunPlan): Promise<CommandResult> {
  const { caller, parts, task } = plan
  if (task && (await caller.preview(endpoints.sendEvents, { ...parts, body: task.body }))) return {}
  requireOpenStdout(context.host.stdout)
  const audit = await Audit.open(context, plan)
  const run = new SessionRun({ ...context, output: ignoreClosedReader(context.output) }, plan, audit)
  return context.tracker.during(run, () => execute(run)).finally(() => run.follower.close())
}

/**
 * Sends the task unless an earlier run has sent it, and follows the session until the answer. Returns a last
 * step, which records the task as done after all output is written.
 */
async function execute(run: SessionRun): Promise<CommandResult> {
  const { context, audit, plan, follower } = run
  const found = await findEarlierTask(run)
  const task = found ? undefined : plan.task
  if (!task) run.taskState = 'continued'
  // Without its own task, a run follows the session's last task, even if another client sent it.
  const hasOwnTask = plan.task !== undefined || plan.after !== undefined
  const earlierTaskIds = hasOwnTask && found?.isTask ? found.ids : undefined
  const limits = new LimitEnforcer(run)
  const denials = new DenialCollector(run)
  const incidents = new SessionIncidents(context)
  const known = createListFacts(task?.events ?? [])
  let endsWithTask = false
  const printer = createEventPrinter(context, plan.answerOptions)
  let isAfterFound = false
  const onEarlierEvents = async (items: readonly EventItem[]) => {
    limits.addEarlier(items)
    for (const { event } of items) {
      const isOfTask = addListedEvent(known, event)
      if (event.type === 'user.message') endsWithTask = isOfTask
    }
    run.lastEarlierId = known.last
    if (task) return
    await denials.addEarlier(items, earlierTaskIds)
    incidents.addEarlier(items, earlierTaskIds)
    // The output of the earlier run may be incomplete. So this run repeats the events after the task, or after
    // the start of the earlier run.
    const later = items.filter(({ event: { id = '' } }) => {
      const isFound = found?.ids.has(id) === true
      isAfterFound ||= isFound
      return isAfterFound && !isFound
    })
    await printer.print(later)
  }
  if (task) await follower.open({ onEarlierEvents }).catch(rethrowAsNotSent)
  else await follower.open({ onEarlierEvents, needsEvents: true, earlierTaskIds })
  const responder = new ToolUseResponder(run)
  try {
    await limits.begin(task !== undefined)
    if (!task && !earlierTaskIds?.size) await follower.verifyStop()
    if (task) {
      const repetition = findRepetition(audit.lastTaskEvents.get(task.hash), endsWithTask)
      if (repetition !== undefined) await confirmRepetition(run, repetition)
      // An interrupted task is resumed by another task.
      if (audit.task && !follower.task.isInterrupted) context.messages.warn(additionalTaskText)
      await sendTask(run, task, known)
    }
    run.isFollowing = true
    limits.startQueries()
    const failure = await follow(run, { responder, denials, limits, incidents, printer })
    await context.output.flush()
    // If the run stopped before the agent finished, the task stays unfinished in the audit file, and the next
    // run resumes it. A run that sent no task, but for example a user.interrupt, leaves nothing to resume.
    const isInterrupted = failure?.kind === 'stopped' && (!task || follower.task.hasOwnTask)
    // If the work is pending, the answer may come later, so the task is not done.
    const isUnfinished = isInterrupted || follower.seen.isWorkPending
    return { failure, lastStep: isUnfinished ? undefined : () => audit.recordTaskDone() }
  } finally {
    responder.close()
    limits.close()
  }
}

const additionalTaskText =
  'the audit file has another task that no run finished: parley sends this task in addition; without a task, the command would continue the earlier one'

/**
 * Prompts a person whether to send a task again. Without a terminal, only prints a warning. Throws a `CliError`
 * of kind `stopped` if the answer is no.
 */
async function confirmRepetition({ context }: SessionRun, repetition: string): Promise<void> {
  if (!canPrompt(context)) return context.messages.warn(`${repetition}: parley sends the task once more`)
  context.messages.warn(repetition)
  if (await withPrompter(context, (prompter) => askYesNo(prompter, 'Send the task once more? [y/N]'))) return
  throw new CliError('stopped', 'the task was not sent again', { sent: 'no', retry: 'later' })
}

interface FollowedWork {
  responder: ToolUseResponder
  denials: DenialCollector
  limits: LimitEnforcer
  incidents: SessionIncidents
  printer: ReturnType<typeof createEventPrinter>
}

/**
 * Follows the session until it is idle, and prints or saves the answer. Returns a failure if the agent
 * finished, but the run was not successful, for example after a denial. Throws a `CliError` if the agent did
 * not finish.
 */
async function follow(run: SessionRun, work: FollowedWork): Promise<CliError | undefined> {
  const { context, follower } = run
  const { limits, denials } = work
  const { task } = follower
  const { answerOptions } = run.plan
  const save = () => saveTaskAnswer(context, answerOptions, follower)
  let missingAnswers = 0
  context.reportData.figures.warnings.missingAnswers = () => missingAnswers
  try {
    const failure = await context.tracker.during({ save: () => [save()] }, async () => {
      const interrupted = await work.responder.reportLostDuring(() => followUntilIdle(run, work))
      if (interrupted) return interrupted
      if (task.otherTask && !task.answer) return run.createOtherClientError(task.otherTask)
      if (task.otherTask)
        context.messages.note(
          `${describeOtherClientTask(task.otherTask)}: messages after that do not answer your task`,
        )
      const answer = await checkTaskAnswer(answerOptions, task.answer)
      if ('failure' in answer) return answer.failure
      // If the work is pending, a warning already announces that the answer may come later.
      if (answer.problem && task.isKnown && !follower.seen.isWorkPending) {
        missingAnswers = 1
        context.messages.warn(answer.problem)
      }
      // The transcript marks such parts itself, so only an answer outside of the transcript needs the warnings.
      if (task.answer && isAnswerPrintedAlone(answerOptions))
        for (const type of listOtherBlockTypes(task.answer))
          context.messages.warn(
            type === 'redacted'
              ? 'the service has redacted a part of the answer'
              : `the answer also has a part of type '${toOneLine(type, 60)}', which parley does not print; 'parley events list --raw' prints it`,
          )
      await printOrSaveTaskAnswer(context, answerOptions, answer.text)
      return undefined
    })
    const denied = denials.createFailure()
    if (!failure) return denied ?? createToolErrorFailure(run)
    const problems = [failure, denied].flatMap((each) => each?.details.problems ?? [])
    return addSavedDataToFailure(failure.with({ problems }), save())
  } finally {
    const used = limits.describeUsage()
    if (context.host.stderr.isTerminal && used !== '') context.messages.printFooter(used)
  }
}

function createToolErrorFailure({ audit, session, plan }: SessionRun): CliError | undefined {
  const problems = [...audit.failedCommands.values()]
  if (!plan.failsOnToolError || problems.length === 0) return undefined
  const count = `${problems.length} --tool command${problems.length === 1 ? '' : 's'}`
  const message = `${session} finished, but ${count} failed`
  return new CliError('denied', message, { problems })
}

/**
 * Follows the session until it is idle and waits for no reply. Returns a failure if an interrupt stopped the
 * agent. Throws a `CliError` if the agent did not finish for another reason.
 */
async function followUntilIdle(run: SessionRun, work: FollowedWork): Promise<CliError | undefined> {
  const { follower } = run
  const { responder, denials, limits, incidents, printer } = work
  let failure: unknown
  do {
    try {
      await followAndPrint(run, follower, {
        printer,
        incidents,
        async onBatch(items) {
          limits.add(items)
          await denials.add(items)
          denials.reportUnapproved(false)
          responder.update()
        },
      })
    } catch (error) {
      failure = error
      responder.stop()
    }
    try {
      await responder.finish()
    } catch (error) {
      // If both failed, parley reports the responder's failure, because only that failure names the time
      // limit after an interrupt.
      failure = error
    }
    denials.reportUnapproved(follower.state.stop !== undefined)
  } while (failure === undefined && !follower.state.stop)
  failure = await limits.end(failure)
  if (failure !== undefined) throw failure
  return checkEnd(run, limits)
}

/** Returns a failure if the session was interrupted. Throws a `CliError` if the answer may be incomplete. */
function checkEnd(run: SessionRun, limits: LimitEnforcer): CliError | undefined {
  const { session, follower } = run
  const { listFailure } = follower
  // If parley could not read the last list, the answer may lack a message that the stream omitted.
  const problem = listFailure
    ? `the answer may be incomplete: the list of events could not be read after the session stopped: ${listFailure.message}`
    : follower.state.lacksIdleEvent && missingAnswerText
  if (problem && isAnswerPrintedAlone(run.plan.answerOptions)) {
    const known = { retry: 'later', resumeArguments: run.createResumeCommand() } as const
    throw new CliError('response', problem, { ...listFailure?.details, ...known })
  }
  if (follower.state.lacksIdleEvent) run.context.messages.warn(missingAnswerText)
  const { otherTask, isInterrupted } = follower.task
  if (otherTask?.isInterrupted) throw run.createOtherClientError(otherTask)
  if (otherTask) return undefined
  const { stop } = follower.state
  // An interrupt of a child thread cancels the thread's tool uses. The session then becomes idle, but the
  // agent has not finished.
  const isHalted = stop?.kind === 'done' && stop.reason === 'interrupted'
  // If the service does not list the events of clients, only the audit file shows an interrupt.
  const isOnlyInAudit = run.audit.hasInterrupt && !follower.task.showsClientEvents
  if (!isInterrupted && !isHalted && !isOnlyInAudit) {
    limits.warnOfExcess()
    return undefined
  }
  const how = isHalted && !isInterrupted ? 'is idle because a tool use was interrupted' : 'was interrupted'
  return run.createInterruptedError(`${session} ${how}, and nothing was sent since`)
}
