import type { Context } from '../../context.ts'
import { asStop, CliError, type Kind } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import { describeResume } from '../../io/failure.ts'
import { isToldForGood } from '../../wire/sessions/events-page.ts'
import type { FollowedTurn } from '../following/followed-turn.ts'
import type { Follower } from '../following/follower.ts'
import { resumption } from '../session-command.ts'
import { messageOf, type SessionRun } from './posting.ts'
import { hashOf } from './task.ts'
import { askForSchema } from './wanted-answer.ts'

/** What a session did before it was interrupted is not the answer to its last task. After a bound no program goes on. */
export function interrupted(
  run: SessionRun,
  { isBounded, isListed }: { isBounded: boolean; isListed: boolean },
): CliError {
  const { session } = run.parts.params
  const why = isListed
    ? `${session} was interrupted, and nothing was sent since`
    : `by the audit an earlier run began to interrupt ${session}, and nothing shows that it has worked since`
  return new CliError('stopped', why, {
    sent: 'yes',
    [isBounded ? 'nextCommand' : 'resume']: resumptionByMessage(run),
  })
}

type Foreign = NonNullable<FollowedTurn['foreign']>

/** Another client sent a task of its own before there was an answer to this one. */
export function endedByOther(run: SessionRun, foreign: Foreign): CliError {
  const why = nameOther(foreign)
  if (!foreign.isInterrupted)
    return new CliError('response', `the agent gave no answer: ${why}`, { sent: 'yes', retry: 'never' })
  const message = `${run.parts.params.session} was interrupted: ${why}`
  return new CliError('stopped', message, { sent: 'yes', resume: resumptionByMessage(run) })
}

export const nameOther = ({ task: { id, type } }: Foreign): string =>
  `another client sent a ${type}${id === undefined ? '' : ` (${id})`} after the task`

/**
 * The command that goes on with a session that was interrupted. Its message is another one than the last task of the journal,
 * which would not be sent again.
 */
export function resumptionByMessage({ context, parts, audit, schema }: SessionRun): string[] {
  const isTold = (text: string) => {
    const body = messageOf(text)
    return audit.task?.hash === hashOf(schema ? askForSchema(context, body, schema) : body)
  }
  const words = [isTold('Go on') ? 'Go on, please' : 'Go on']
  return resumption(context, parts.params.session, words)
}

/** What becomes of the session when nobody follows it, and how to go on with it. */
export function goesOn({ resume }: SessionRun, follower?: Follower, isInterrupted = false): string {
  const waits = follower !== undefined && follower.state.asked.length > 0
  const what = isInterrupted ? 'was sent an interrupt' : waits ? 'waits for an answer' : 'goes on'
  return `the session ${what}; ${describeResume(resume()).join('\n  ')}`
}

const isLate = ({ timers }: Context, { deadline }: Caller) => timers.now() >= deadline

/** These say how the session ended, or what is not known of it. */
const endings: readonly Kind[] = ['waiting', 'stuck', 'denied', 'unknown']

/** Has a failure of `work` say how the run goes on. */
export const explained = <T>(run: SessionRun, work: Promise<T>): Promise<T> =>
  work.catch((error) => {
    throw explainFailure(error, run)
  })

/** A failure must not look like a reason to send the task again. */
function explainFailure(failure: unknown, run: SessionRun): unknown {
  const { context, caller, task, isAudited } = run
  const error = asStop(failure)
  if (!(error instanceof CliError)) return error
  const resume = run.resume()
  if (isLate(context, caller) && error.kind === 'not-sent' && task?.isAccepted !== false)
    return new CliError('stopped', error.message, {
      sent: 'yes',
      retry: isAudited ? 'later' : 'never',
      deadline: true,
      resume,
    })
  if (error.kind === 'stopped')
    return error.with({
      // Without a task the same command takes the session up again. After a bound it would stop at once.
      retry: isAudited && error.details.deadline ? 'later' : task ? 'never' : error.details.retry,
      consequence: undefined,
      resume: error.details.nextCommand ? undefined : (error.details.resume ?? resume),
    })
  if (error.kind === 'waiting')
    return error.with({ resume, retry: isAudited ? 'later' : error.details.retry })
  if (!task?.isAccepted) return error
  const known = { sent: 'yes', retry: 'never' } as const
  if (error.kind === 'unknown') return error.with({ retry: 'look-first' })
  if (endings.includes(error.kind)) return error.with(known)
  // A reply was refused: the status of that says what to do.
  if (error.details.pending) return error.with({ ...known, consequence: 'the task was accepted', resume })
  if (error.kind === 'file' || error.kind === 'unexpected')
    return error.with({ ...known, consequence: undefined, resume })
  const { rawBody: _, retryAfter: __, ...details } = error.details
  // By its audit the same command takes the session up.
  const goesOn = isAudited && (details.retry ?? 'never') !== 'never'
  const isGone = error.kind === 'refused' && error.details.status === 404
  const isTold = isGone || isToldForGood(error)
  const message = isTold && !isGone ? error.message : `the session could not be followed: ${error.message}`
  return new CliError(isTold ? error.kind : 'response', message, {
    ...details,
    ...known,
    retry: goesOn ? 'later' : 'look-first',
    consequence: 'the task was accepted',
    resume,
  })
}
