import { CliError } from '../../errors.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import { createFollowDeadlineError } from '../reconnect-policy.ts'
import { addIdsFromReceipt } from '../sending/receipt.ts'
import { createResumeCommand } from '../session-command.ts'
import type { RunPlan } from './plan.ts'
import { pollEventList, postEventsOnce } from './posting.ts'
import { auditResumeHint, type SessionRun, taskAcceptedText } from './session-run.ts'
import { type AuditedTask, createListFacts, type FoundTask, findTaskInList } from './task.ts'

/**
 * Finds the task that an earlier run sent, according to the audit file, or the event of `--after`. Returns
 * `undefined` if there is neither. Waits until the event list contains the task, because only messages after
 * the task can be the answer. If the service lists no events of clients, returns no ids. Throws a `CliError`
 * after 30 s.
 */
export async function findEarlierTask(run: SessionRun): Promise<FoundTask | undefined> {
  const { audit, context, parts } = run
  const { task, after } = run.plan
  const named = { hash: '', is: 'accepted', known: createListFacts([]) } as const
  const earlier = after === undefined ? audit.task : named
  if (!earlier || (task && task.hash !== earlier.hash)) return undefined
  const what = after === undefined ? 'the task' : `the event ${quoteAndShortenName(after)}`
  const found = await pollEventList(run, {
    read: (list) => findTaskInList(list, earlier, after),
    whenWaiting: () => context.messages.note(`looking for ${what} in the session, for up to 30 s`),
  })
  const isAccepted = earlier.is === 'accepted'
  if (!found && isAccepted) requireTimeToFind(run, what)
  if (!found && after !== undefined)
    throw new CliError('unknown', `the session does not show ${what}`, {
      // A service may list the event with another id than in the receipt. The same command would then fail
      // each time, so `retry` is not `later`.
      retry: 'look-first',
      consequence: `check with '${parts.inspectCommand}'\nwithout --after, the run continues the session without waiting for this event`,
      resumeArguments: createResumeCommand(context, run.session, {}),
    })
  if (!found) {
    const message = isAccepted
      ? 'the task was accepted, but the session does not show it yet'
      : 'an earlier run began to send the task, and it is not known whether it arrived'
    throw new CliError('unknown', message, {
      sent: isAccepted ? undefined : 'unknown',
      retry: isAccepted ? 'later' : 'look-first',
      consequence: `check with '${parts.inspectCommand}' whether the event list contains the task\nonce the list contains the task, run your command again to continue the session; to send the task a second time, name another --audit file`,
      // The resume command has no task, so it cannot find or send a task that may not have arrived.
      resumeArguments: task && !isAccepted ? undefined : run.createResumeCommand(),
    })
  }
  if (!isAccepted) audit.add({ toolUse: null, task: earlier.hash, event: 'accepted' })
  if (task)
    context.messages.note(
      'the audit file shows that an earlier run sent this task: this run continues the session and does not send the task again',
    )
  return found
}

function requireTimeToFind(run: SessionRun, what: string): void {
  if (!run.parts.deadline.hasPassed) return
  const message = `the deadline passed before the session showed ${what}`
  throw createFollowDeadlineError(message).with({ resumeArguments: run.createResumeCommand() })
}

export async function sendTask(
  run: SessionRun,
  { body, events, hash }: NonNullable<RunPlan['task']>,
  known: AuditedTask['known'],
): Promise<void> {
  const { audit, follower } = run
  const { receiptEvents, failure } = await postEventsOnce(run, body, {
    isSingle: false,
    acceptedText: taskAcceptedText,
    rerunHint: audit.hasFile ? auditResumeHint : undefined,
    record(event, reason) {
      if (event === 'accepted') run.taskState = 'accepted'
      audit.add({ toolUse: null, task: hash, event, reason, known: event === 'sent' ? known : undefined })
    },
  })
  if (failure) throw failure
  follower.seen.addSent(addIdsFromReceipt(events, receiptEvents))
}
