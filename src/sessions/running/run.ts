import type { Context } from '../../context.ts'
import { CliError, type Kind, usage } from '../../errors.ts'
import { type Caller, createCaller } from '../../http/call.ts'
import { describeResume } from '../../io/failure.ts'
import { printWhileRead } from '../../io/output.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { createAsker } from '../confirming/asker.ts'
import { FollowedTurn, isTask } from '../following/followed-turn.ts'
import { type Follower, openFollower } from '../following/follower.ts'
import { createPreviews, type LiveFlags } from '../following/previews.ts'
import { printTranscript } from '../following/transcript.ts'
import { openBefore, sentEvents } from '../sending/delivery.ts'
import { readReceipt } from '../sending/receipt.ts'
import { type EventsOptions, readEvents } from '../sending/request.ts'
import { type SessionOptions, type SessionParts, sessionParts } from '../session.ts'
import { resumption } from '../session-command.ts'
import {
  type AnswerOptions,
  askForSchema,
  awaitAnswer,
  deliverAnswer,
  keepingAnswer,
  readAnswerFlags,
  type WantedAnswer,
} from './answer.ts'
import { type AskedAgain, type Audit, openAudit } from './audit.ts'
import { type BoundFlags, Bounds, boundFlags } from './bounds.ts'
import { hasArrived, type ListedSession, lookUntil } from './looking.ts'
import { lineFor, longestDoubt } from './replying.ts'
import { Responder } from './responder.ts'
import { type ReplyFlags, readPolicyFlag, readToolFlags, readToolTimeout } from './run-flags.ts'
import { createCounter, hashOf, isUnderWay, type Known } from './task.ts'

export interface RunOptions
  extends SessionOptions,
    EventsOptions,
    ReplyFlags,
    AnswerOptions,
    LiveFlags,
    BoundFlags {}

/** Events that are sent once, before the session is followed. */
interface RunTask {
  body: Uint8Array
  /** What the journal knows it by. */
  hash: string
  isAccepted: boolean
}

/** What a failure has to take into account, so that nobody sends the task again. */
interface WayOn {
  /** Absent if the session is taken up as it stands. */
  task: RunTask | undefined
  /** The command that goes on with the session. */
  resume: string[]
  /** The same command goes on, too: by its audit it knows what it sent. */
  isAudited: boolean
}

/**
 * Sends a task, or takes a session up as it stands, and replies to what it waits for until nothing is left to do. Throws
 * a `CliError` if the work was not done: kinds `waiting`, `stuck`, `denied`, `stopped` and `unknown` among others.
 */
export async function runTask(context: Context, options: RunOptions, words: string[]): Promise<void> {
  try {
    await sendAndFollow(context, options, words)
  } catch (error) {
    // What an earlier run or another client sent is not what this run did.
    if (error instanceof CliError && error.details.sent === 'yes')
      throw error.with({ sent: context.calls.sent })
    throw error
  }
}

async function sendAndFollow(context: Context, options: RunOptions, words: string[]): Promise<void> {
  const [tools, toolTimeout] = [readToolFlags(options.tool), readToolTimeout(options.toolTimeout)]
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const { session } = parts.params
  const rules = { policy: await readPolicyFlag(context, options.policy), tools }
  const wanted = await readAnswerFlags(context, settings, options)
  const given = await readEvents(context, options, words)
  const body = given && wanted.schema ? askForSchema(context, given, wanted.schema) : given
  let task: RunTask | undefined = body && { body, hash: hashOf(body), isAccepted: false }
  const resume = resumption(context, session)
  const caller = createCaller(context, settings, {
    wayOn: () => (task?.isAccepted === false ? undefined : describeResume(resume).join('\n  ')),
  })
  const { dryRun, curl } = context.flags
  if ((dryRun || curl) && !task) throw usage('there is no task: --dry-run and --curl have nothing to show')
  if (task && (await caller.preview(endpoints.sendEvents, { ...parts, body: task.body }))) return
  const workplace = { address: settings.values.agentsUrl, session, deadline: caller.deadline }
  const audit = await openAudit(context, workplace, options.audit)
  const asker = createAsker(context, parts.look)
  const lasting = { ...context, output: printWhileRead(context.output) }
  const previews = createPreviews(lasting, options, settings.values, !wanted.isAlone && !options.ids)
  try {
    if (task && (await isTakenUp(lasting, caller, parts, { task, audit, resume }))) task = undefined
    if (!task) context.summary.resume = resume
    const before = createCounter(task ? sentEvents(task.body, []) : [])
    const bounds = new Bounds(
      {
        context: lasting,
        caller,
        // What it asks for beside is not wanted on stdout.
        parts: { ...parts, isEndured: true },
        audit,
        resume: resumption(context, session, { words: ['Go on'], without: boundFlags }),
      },
      options,
    )
    const showPast = async (items: readonly EventItem[]) => {
      bounds.addPast(items)
      await before.addAll(items)
    }
    const bounded = bounds.over(caller)
    const follower = task
      ? await openBefore(lasting, bounded, { ...parts, body: task.body }, { showPast, previews })
      : await openFollower(lasting, bounded, parts, { showPast, needsPast: true, previews })
    const { state } = follower
    const responder = new Responder({
      context: lasting,
      caller: bounded,
      parts,
      state,
      audit,
      asker,
      rules,
      toolTimeout,
      waiting: () => (state.stop?.kind === 'waiting' ? state.pending : []),
      isStopped: () => bounds.isReached,
    })
    const explained = <T>(work: Promise<T>) =>
      work.catch((error) => {
        throw explainFailure(
          error,
          { task, resume, isAudited: options.audit !== undefined },
          isLate(context, caller),
        )
      })
    try {
      if (task) await bounds.begin()
      const sent =
        task &&
        (await explained(
          sendTask(lasting, caller, parts, { task, audit, known: { alike: before.alike }, resume }),
        ))
      bounds.follow(follower)
      const ask = (text: string) => sendAgain(lasting, caller, parts, { text, follower, audit, resume })
      const { ids } = options
      const endTask = () => {
        if (audit.task?.is === 'accepted' && !follower.isUndone)
          audit.add({ toolUse: null, task: audit.task.hash, event: 'done' })
      }
      const failure = await follow(
        lasting,
        follower,
        { responder, bounds },
        {
          session,
          ids,
          wanted,
          sent,
          ask,
          async isInterrupted() {
            const isSo = await isInterrupted({ context: lasting, caller, parts }, follower)
            // The interrupt that was sent has come to its end.
            if (isSo && sent) endTask()
            return isSo
          },
          resume,
          explained,
        },
      )
      endTask()
      if (failure) throw failure
    } finally {
      bounds.close()
      follower.close()
    }
  } finally {
    await asker.close()
    audit.close()
  }
}

/** Whether an earlier run has sent the task, by the audit and the session's list. Throws a `CliError` if that is not known. */
async function isTakenUp(
  context: Context,
  caller: Caller,
  parts: SessionParts,
  { task, audit, resume }: { task: RunTask; audit: Audit; resume: string[] },
): Promise<boolean> {
  const events = sentEvents(task.body, [])
  try {
    if (!(await isUnderWay({ context, caller, parts }, audit.task, { hash: task.hash, events }))) return false
  } catch (error) {
    throw error instanceof CliError && error.kind === 'unknown' ? error.with({ resume }) : error
  }
  if (audit.task?.is === 'posting') audit.add({ toolUse: null, task: task.hash, event: 'accepted' })
  context.note(
    'the audit says that an earlier run sent this task: it is not sent again, the session is taken up',
  )
  return true
}

interface Sending {
  task: RunTask
  audit: Audit
  /** What the list showed before. */
  known: Known
  resume: string[]
}

/** Sends the task once; returns its events as they will be shown. Each step is in the journal before it is taken. */
async function sendTask(
  context: Context,
  caller: Caller,
  parts: SessionParts,
  { task, audit, known, resume }: Sending,
): Promise<SessionEvent[]> {
  const line = { toolUse: null, task: task.hash }
  const onAccepted = () => {
    task.isAccepted = true
    context.summary.resume = resume
    context.calls.sayInstead(() => `the task was accepted; ${goesOn(resume)}`)
    audit.add({ ...line, event: 'accepted' })
  }
  audit.add({ ...line, event: 'sent', known })
  try {
    const named = await caller.call(endpoints.sendEvents, { ...parts, body: task.body }, (response) =>
      readReceipt(context, response, { isPrinted: false, onAccepted }),
    )
    return sentEvents(task.body, named)
  } catch (error) {
    if (!(error instanceof CliError) || task.isAccepted) throw error
    try {
      audit.add({ ...line, event: lineFor(error.details.fate), reason: error.message })
    } catch {
      // Then it stays in doubt, and what failed first counts.
    }
    throw audit.task?.is === 'posting' ? error.with({ consequence: looksFirst }) : error
  }
}

const looksFirst =
  'the task may have been accepted: the same command with the same --audit goes on with it once the session shows it'

/**
 * Sends one more message to a session that rests, once; returns its event as it will be shown. If an earlier run has sent one
 * after the same rest, that one is returned. Throws a `CliError`: of kind `unknown` if the session's list does not show
 * that it arrived.
 */
async function sendAgain(
  context: Context,
  caller: Caller,
  parts: SessionParts,
  { text, follower, audit, resume }: { text: string; follower: Follower; audit: Audit; resume: string[] },
): Promise<SessionEvent[]> {
  const rest = [...follower.state.stops].at(-1)
  if (audit.asked && audit.asked.rest === rest)
    return [await findAsked({ context, caller, parts }, audit.asked, resume)]
  const body = Buffer.from(
    JSON.stringify({ events: [{ type: 'user.message', content: [{ type: 'text', text }] }] }),
  )
  const line = { toolUse: null, again: rest ?? '' }
  audit.add({ ...line, event: 'sent' })
  const onAccepted = () => audit.add({ ...line, event: 'accepted' })
  try {
    const events = await caller.call(endpoints.sendEvents, { ...parts, body, isEndured: true }, (response) =>
      readReceipt(context, response, { isPrinted: false, onAccepted }),
    )
    return sentEvents(body, events)
  } catch (error) {
    if (!(error instanceof CliError) || error.kind === 'file') throw error
    const event = lineFor(error.details.fate)
    try {
      audit.add({ ...line, event, reason: error.message })
    } catch {
      // Then it stays in doubt, and what failed first counts.
    }
    if (event === 'refused') throw error
    const isSent = ({ event }: EventItem) => event.type === 'user.message' && readText(event) === text
    if (await hasArrived({ context, caller, parts }, (item) => isSent(item) && follower.isNew(item)))
      return sentEvents(body, [])
    throw new CliError(
      'unknown',
      `it is not known whether the message to ask again arrived: ${error.message}`,
      { sent: 'unknown', retry: 'look-first', resume },
    )
  }
}

/**
 * The message with which an earlier run asked again, once the session shows it. Throws a `CliError` of kind `unknown` if it
 * does not.
 */
async function findAsked(
  session: ListedSession,
  { rest }: AskedAgain,
  resume: string[],
): Promise<SessionEvent> {
  const until = session.context.timers.now() + longestDoubt
  const found = await lookUntil(session, until, () => {
    let isAfter = false
    let message: SessionEvent | undefined
    return {
      add({ event }) {
        if (isAfter && event.type === 'user.message') message = event
        isAfter ||= event.id === rest
      },
      result: () => message,
    }
  })
  if (found) return found
  const problem = 'it is not known whether the message to ask again arrived that an earlier run began to send'
  throw new CliError('unknown', problem, { sent: 'unknown', retry: 'look-first', resume })
}

interface Followed {
  session: string
  ids: boolean | undefined
  wanted: WantedAnswer
  /** The events of the task, if there is one. */
  sent: SessionEvent[] | undefined
  /** Sends one more message; returns it as it will be shown. */
  ask(text: string): Promise<SessionEvent[]>
  /** Whether the last that a client did was to interrupt the session. */
  isInterrupted(): Promise<boolean>
  resume: string[]
  /** Has a failure say how the run goes on. */
  explained<T>(work: Promise<T>): Promise<T>
}

/**
 * Follows the session to its answer, and replies to what waits meanwhile. Returns why that is not a success although the turn
 * ended well. Throws a `CliError` if it did not.
 */
async function follow(
  context: Context,
  follower: Follower,
  { responder, bounds }: { responder: Responder; bounds: Bounds },
  { session, ids, wanted, sent: task, ask, isInterrupted, resume, explained }: Followed,
): Promise<CliError | undefined> {
  const { host, note, timers, start } = context
  const followTurn = async (words: string | undefined) => {
    const refusal = words === undefined ? undefined : bounds.refusal()
    if (refusal) throw refusal
    const sent = words === undefined ? task : await ask(words)
    const printed = printTranscript(context, follower, {
      session,
      ids,
      markdown: wanted.markdown,
      isAside: wanted.isAlone,
      sent,
      certain: sent && 'the task was accepted',
      async react(items) {
        bounds.add(items)
        await responder.react(items)
      },
      fate: goesOn(resume),
      resume,
    })
    const failure = await bounds.end(await printed.then(noFailure, (error) => error))
    if (failure) throw failure
    if (!sent?.some(isTask) && (await isInterrupted())) throw interrupted(context, session)
  }
  const { turn } = follower
  try {
    const failure = await keepingAnswer(context, wanted, follower, async () => {
      const answer = await awaitAnswer(context, wanted, turn, (words) => explained(followTurn(words)))
      if ('failure' in answer) return answer.failure
      await explained(deliverAnswer(context, wanted, answer.json))
      return undefined
    })
    return failure ?? responder.failure()
  } finally {
    const seconds = Math.max(0, (timers.now() - start) / 1000).toFixed(1)
    if (host.stderr.isTerminal) note(`${responder.describe()}; ${seconds} s`)
    const took = bounds.describe()
    if (host.stderr.isTerminal && took !== '') context.foot(took)
  }
}

const noFailure = () => undefined

/** How long a list may take to show the last rest. Milliseconds. */
const longestWait = 2_000

/** Whether the last that a client did was to interrupt the session: a stream may leave out what clients do. */
async function isInterrupted(session: ListedSession, { turn, state }: Follower): Promise<boolean> {
  if (turn.isInterrupted) return true
  const rest = [...state.stops].at(-1)
  const isListed = await lookUntil(session, session.context.timers.now() + longestWait, () => {
    const listed = new FollowedTurn()
    let isWhole = rest === undefined
    return {
      add({ event }) {
        listed.add({ event, key: event.id ?? '' }, false)
        isWhole ||= event.id === rest
      },
      result: () => (isWhole ? listed.isInterrupted : undefined),
    }
  })
  return isListed === true
}

/** What a session did before it was interrupted is not the answer to its last task. */
const interrupted = (context: Context, session: string) =>
  new CliError('stopped', `${session} was interrupted, and nothing was sent since`, {
    sent: 'yes',
    resume: resumption(context, session, { words: ['Go on'] }),
  })

const goesOn = (resume: string[]): string => `the session goes on; ${describeResume(resume).join('\n  ')}`

const isLate = ({ timers }: Context, { deadline }: Caller) => deadline > 0 && timers.now() >= deadline

/** These say how the session ended, or what is not known of it. */
const endings: readonly Kind[] = ['waiting', 'stuck', 'denied', 'unknown']

/** A failure must not look like a reason to send the task again. */
function explainFailure(error: unknown, { task, resume, isAudited }: WayOn, hasPassed: boolean): unknown {
  if (!(error instanceof CliError)) return error
  if (hasPassed && error.kind === 'not-sent' && task?.isAccepted !== false)
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
      resume: error.details.resume ?? resume,
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
  return new CliError('response', `the session could not be followed: ${error.message}`, {
    ...details,
    ...known,
    retry: 'look-first',
    consequence: 'the task was accepted',
    resume,
  })
}
