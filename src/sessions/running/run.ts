import type { Context } from '../../context.ts'
import { CliError, usage } from '../../errors.ts'
import { createCaller } from '../../http/call.ts'
import { describeResume } from '../../io/failure.ts'
import { letSignalsCome } from '../../io/input.ts'
import { printWhileRead } from '../../io/output.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { Asker } from '../confirming/asker.ts'
import { isTask } from '../following/followed-turn.ts'
import { type Follower, openFollower } from '../following/follower.ts'
import { followAndPrint } from '../following/transcript.ts'
import { requireTime } from '../patience.ts'
import { Pace } from '../policy/policy.ts'
import { openBefore, sentEvents } from '../sending/delivery.ts'
import { type EventsOptions, readEvents } from '../sending/request.ts'
import { type SessionOptions, sessionParts } from '../session.ts'
import { resumption } from '../session-command.ts'
import { Actor } from './actor.ts'
import { Audit } from './audit.ts'
import { type BoundFlags, Bounds } from './bounds.ts'
import { Denials } from './denials.ts'
import { byAudit, endTask, findShown, type RunTask, type SessionRun, sendTask } from './posting.ts'
import { type ReplyFlags, readPolicyFlag, readToolFlags, readToolTimeout } from './run-flags.ts'
import { createCounter, hashOf, type Known, marksOf } from './task.ts'
import {
  type AnswerOptions,
  askForSchema,
  checkAnswer,
  deliverAnswer,
  keepingAnswer,
  readAnswerFlags,
  type WantedAnswer,
} from './wanted-answer.ts'
import { endedByOther, explained, goesOn, interrupted, nameOther, resumptionByMessage } from './way-on.ts'

export interface RunOptions extends SessionOptions, EventsOptions, ReplyFlags, AnswerOptions, BoundFlags {}

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
  const pace = new Pace(async () => {
    await letSignalsCome()
    requireTime({ context, caller })
  })
  const rules = { policy: await readPolicyFlag(context, options.policy), tools, pace }
  const wanted = await readAnswerFlags(context, settings, options)
  const given = await readEvents(context, options, words)
  const body = given && wanted.schema ? askForSchema(context, given, wanted.schema) : given
  const task: RunTask | undefined = body && { body, hash: hashOf(body), isAccepted: false }
  const caller = createCaller(context, settings, {
    wayOn() {
      if (task?.isAccepted !== false) return describeResume(run.resume()).join('\n  ')
      return options.audit !== undefined && context.calls.sent !== 'no' ? byAudit : undefined
    },
  })
  const { dryRun, curl } = context.flags
  if ((dryRun || curl) && !task) throw usage('there is no task: --dry-run and --curl have nothing to show')
  if (task && (await caller.preview(endpoints.sendEvents, { ...parts, body: task.body }))) return
  const workplace = { address: settings.values.agentsUrl, session, deadline: caller.deadline }
  const audit = await Audit.open(context, workplace, options.audit)
  context.cleanups.add(() => audit.close())
  const asker = new Asker(context, parts.look)
  const lasting = { ...context, output: printWhileRead(context.output) }
  const isAudited = options.audit !== undefined
  const { schema } = wanted
  const bounds = new Bounds(
    {
      context: lasting,
      caller,
      parts,
      audit,
      resume: (byMessage) => (byMessage ? resumptionByMessage(run) : resumption(context, session)),
    },
    options,
  )
  const resume = () => bounds.resume()
  const run: SessionRun = { context: lasting, caller, parts, audit, isAudited, task, schema, resume }
  try {
    const shown = await findShown(run)
    if (shown && task) {
      task.isAccepted = true
      run.task = undefined
    }
    const own = task && shown
    const forPrograms = () => (bounds.isReached ? undefined : resume())
    if (!run.task) context.summary.resume = forPrograms
    const before = createCounter(run.task ? marksOf(sentEvents(run.task.body, [])) : [])
    // After a bound it would stop at once.
    context.calls.expectGoingOn(
      () => !bounds.isReached && (task === undefined || audit.task?.is === 'accepted'),
    )
    const denials = new Denials(audit.denied, own)
    const showPast = async (items: readonly EventItem[]) => {
      bounds.addPast(items)
      for (const { event } of items) denials.add(event)
      await before.addAll(items)
    }
    const bounded = bounds.over(caller)
    const follower = run.task
      ? await openBefore(lasting, bounded, parts, { showPast })
      : await explained(run, openFollower(lasting, bounded, parts, { showPast, needsPast: true, own }))
    const actor = new Actor(
      { context: lasting, caller: bounded, parts },
      {
        follower,
        audit,
        rules: { ...rules, toolTimeout, asker },
        denials,
        isStopped: () => bounds.isReached,
      },
    )
    try {
      await bounds.begin(run.task !== undefined)
      if (run.task) denials.begin()
      const sent = run.task && (await explained(run, sendFirst(run, run.task, before.known, forPrograms)))
      bounds.follow(follower)
      const failure = await follow(run, follower, { actor, denials, bounds, wanted, ids: options.ids, sent })
      await lasting.output.flush()
      context.lastSteps.push(() => endTask(run, follower))
      if (failure) throw failure
    } finally {
      bounds.close()
      follower.close()
    }
  } finally {
    asker.close()
  }
}

const accepted = 'the task was accepted'

/** Sends the task, and says from then on how to go on with it. */
const sendFirst = (
  run: SessionRun,
  task: RunTask,
  known: Known,
  resume: () => string[] | undefined,
): Promise<SessionEvent[]> =>
  sendTask(run, task, {
    known,
    onAccepted() {
      const { context } = run
      context.summary.resume = resume
      context.calls.sayInstead(() => goesOn(run), accepted)
    },
  })

interface Followed {
  actor: Actor
  denials: Denials
  bounds: Bounds
  wanted: WantedAnswer
  ids: boolean | undefined
  /** The events of the task, if there is one. */
  sent: SessionEvent[] | undefined
}

/**
 * Follows the session to its answer, and replies to what waits meanwhile. Returns why that is not a success although the turn
 * ended well. Throws a `CliError` if it did not.
 */
async function follow(
  run: SessionRun,
  follower: Follower,
  { actor, denials, bounds, wanted, ids, sent: task }: Followed,
): Promise<CliError | undefined> {
  const { context, parts, resume } = run
  const { host, note, timers, start } = context
  const { session } = parts.params
  const { turn } = follower
  const followTurn = async (sent: SessionEvent[] | undefined): Promise<void> => {
    const followed = followAndPrint(context, follower, {
      session,
      ids,
      markdown: wanted.markdown,
      isAside: wanted.isAlone,
      sent,
      certain: sent && accepted,
      async react(items) {
        bounds.add(items)
        for (const { event } of items) denials.add(event)
        await actor.see(items)
      },
      wayOn: () => goesOn(run, follower, bounds.isInterrupted),
      resume,
    })
    const failed = await followed.then(noFailure, (error) => error)
    if (failed !== undefined) actor.dismiss()
    await actor.settle()
    if (failed === undefined && !follower.state.stop) return followTurn(undefined)
    const failure = await bounds.end(failed)
    if (failure) throw failure
    if (turn.foreign?.isInterrupted) throw endedByOther(run, turn.foreign)
    if (turn.foreign) return
    const isListed = turn.isInterrupted
    if (!isListed && !bounds.isInterruptedByAudit) {
      bounds.tellExcess()
      return
    }
    // An interrupt that was sent has come to its end, a task that was interrupted has not.
    if (sent && !sent.some(isTask)) context.lastSteps.push(() => endTask(run, follower))
    throw interrupted(run, { isBounded: bounds.isBounded, isListed })
  }
  try {
    const failure = await keepingAnswer(context, wanted, follower, async () => {
      await explained(run, followTurn(task))
      if (turn.foreign && !turn.answer) return endedByOther(run, turn.foreign)
      if (turn.foreign) context.note(`${nameOther(turn.foreign)}: what follows that is not the answer`)
      const answer = await checkAnswer(wanted, turn)
      if ('failure' in answer) return answer.failure
      await explained(run, deliverAnswer(context, wanted, answer.text))
      return undefined
    })
    return failure ?? denials.failure(session)
  } finally {
    const seconds = Math.max(0, (timers.now() - start) / 1000).toFixed(1)
    if (host.stderr.isTerminal) note(`${actor.describe()}; ${seconds} s`)
    const took = bounds.describe()
    if (host.stderr.isTerminal && took !== '') context.foot(took)
  }
}

const noFailure = () => undefined
