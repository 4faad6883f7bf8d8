import { CliError } from '../../errors.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Follower } from '../following/follower.ts'
import { sentEvents } from '../sending/delivery.ts'
import { readReceipt } from '../sending/receipt.ts'
import type { SessionAccess, SessionParts } from '../session.ts'
import type { Audit, AuditEntry } from './audit.ts'
import { lookUntil } from './looking.ts'
import { lineFor, longestDoubt } from './replying.ts'
import { createSearch, type JournalTask, type Known } from './task.ts'
import type { WantedAnswer } from './wanted-answer.ts'

/** Events that are sent once, before the session is followed. */
export interface RunTask {
  body: Uint8Array
  /** What the journal knows it by. */
  hash: string
  isAccepted: boolean
}

/** A run, from its first request to its end. */
export interface SessionRun extends SessionAccess {
  audit: Audit
  /** The same command goes on, too: by its audit it knows what it sent. */
  isAudited: boolean
  /** Absent if the session is taken up as it stands. */
  task: RunTask | undefined
  /** What the answer has to be, which a task tells the agent. */
  schema: WantedAnswer['schema']
  /** The command that goes on with the session now. */
  resume(): string[]
}

/**
 * The ids of the task's events if, by the audit, an earlier run has sent it; absent if none has. Throws a `CliError` if the
 * session does not show it. A run without a task waits for the one before, too: what came before that is not its answer.
 */
export async function findShown(run: SessionRun): Promise<ReadonlySet<string> | undefined> {
  const { audit, context, task } = run
  const earlier = audit.task
  if (!earlier || (task && task.hash !== earlier.hash)) return undefined
  let ids: ReadonlySet<string>
  try {
    ids = await requireShown(run, earlier, task && sentEvents(task.body, []))
  } catch (error) {
    // A task that may never have arrived is sent again or waited for, and both need its words.
    const isLost = task !== undefined && earlier.is === 'posting'
    const isUnknown = error instanceof CliError && error.kind === 'unknown'
    throw isUnknown && !isLost ? error.with({ resume: run.resume() }) : error
  }
  if (earlier.is === 'posting') audit.add({ toolUse: null, task: earlier.hash, event: 'accepted' })
  if (task)
    context.note(
      'the audit says that an earlier run sent this task: it is not sent again, the session is taken up',
    )
  return ids
}

/**
 * Waits until the list shows a task that an earlier run has sent, and returns the ids of its events. Throws a `CliError` of kind
 * `unknown` if the list does not show it.
 */
async function requireShown(
  session: SessionAccess,
  task: JournalTask,
  events: readonly SessionEvent[] | undefined,
): Promise<ReadonlySet<string>> {
  const until = session.context.timers.now() + longestDoubt
  const ids = await lookUntil(session, until, () => createSearch(task, events))
  if (ids) return ids
  throw task.is === 'accepted' ? notShown(session.parts) : notKnown(session.parts, events !== undefined)
}

const onceShown = (look: string) =>
  `look with '${look}'\nonce the session shows the task, the command below goes on with it; without --audit it takes the session up as it is`

/** Nothing is in doubt: the same command goes on later. */
const notShown = ({ look }: SessionParts) =>
  new CliError('unknown', 'the task was accepted, but the session does not show it yet', {
    sent: 'yes',
    retry: 'later',
    consequence: onceShown(look),
  })

const notKnown = ({ look }: SessionParts, isGivenAgain: boolean) =>
  new CliError('unknown', 'an earlier run began to send the task, and it is not known whether it arrived', {
    sent: 'unknown',
    retry: 'look-first',
    consequence: isGivenAgain
      ? `look with '${look}'\nonce the session shows it, the same command goes on with it; to send it again, name another --audit file`
      : onceShown(look),
  })

/** The run came to a good end, unless the service has not shown yet that it works on the task. */
export function endTask({ audit }: SessionRun, follower: Follower): void {
  if (audit.task?.is === 'accepted' && !follower.isUndone)
    audit.add({ toolUse: null, task: audit.task.hash, event: 'done' })
}

/** Sends the task once; returns its events as they will be shown. `known` is what the list showed before. */
export async function sendTask(
  run: SessionRun,
  task: RunTask,
  { known, onAccepted }: { known: Known; onAccepted(): void },
): Promise<SessionEvent[]> {
  const accept = () => {
    task.isAccepted = true
    onAccepted()
  }
  try {
    return await postOnce(run, { body: task.body, task: task.hash, known, onAccepted: accept })
  } catch (error) {
    if (!(error instanceof CliError) || task.isAccepted) throw error
    throw run.audit.task?.is === 'posting' ? error.with({ consequence: looksFirst }) : error
  }
}

export const byAudit = 'the same command with the same --audit goes on with it once the session shows it'

const looksFirst = `the task may have been accepted: ${byAudit}`

interface Post {
  body: Uint8Array
  /** What the journal knows it by. */
  task: string
  known: Known
  onAccepted(): void
}

/** Posts events once, and returns them as they will be shown. Each step is in the journal before it is taken. */
async function postOnce(
  { context, caller, parts, audit }: SessionRun,
  { body, task, known, onAccepted }: Post,
): Promise<SessionEvent[]> {
  const write = (entry: Omit<AuditEntry, 'toolUse'>) => audit.add({ toolUse: null, task, ...entry })
  let isAccepted = false
  write({ event: 'sent', known })
  try {
    const named = await caller.call(endpoints.sendEvents, { ...parts, body }, (response) =>
      readReceipt(context, response, {
        isPrinted: false,
        onAccepted() {
          isAccepted = true
          onAccepted()
          write({ event: 'accepted' })
        },
      }),
    )
    return sentEvents(body, named)
  } catch (error) {
    if (!(error instanceof CliError) || isAccepted) throw error
    try {
      write({ event: lineFor(error.details.fate), reason: error.message })
    } catch {
      // Then it stays in doubt, and what failed first counts.
    }
    throw error
  }
}

/** The body of a message that says this. */
export const messageOf = (text: string): Uint8Array =>
  Buffer.from(JSON.stringify({ events: [{ type: 'user.message', content: [{ type: 'text', text }] }] }))
