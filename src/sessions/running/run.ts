import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { type Caller, createCaller } from '../../http/call.ts'
import { describeResume } from '../../io/failure.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { endpoints } from '../../wire/endpoints.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { createAsker } from '../confirming/asker.ts'
import { createEventPrinter } from '../following/event-printer.ts'
import { openFollower } from '../following/follower.ts'
import { printTranscript } from '../following/transcript.ts'
import { openBefore, sentEvents } from '../sending/delivery.ts'
import { readReceipt } from '../sending/receipt.ts'
import { type EventsOptions, readEvents } from '../sending/request.ts'
import { type SessionOptions, type SessionParts, sessionParts } from '../session.ts'
import { resumption } from '../session-command.ts'
import { openAudit } from './audit.ts'
import { explainFailure } from './failure.ts'
import { printWhileRead } from './print-while-read.ts'
import type { Progress } from './progress.ts'
import { Responder } from './responder.ts'
import { type AnswerFlags, readPolicyFlag, readToolFlags, readToolTimeout } from './run-flags.ts'

export interface RunOptions extends SessionOptions, EventsOptions, AnswerFlags {
  ids?: boolean
}

/**
 * Sends a task, or takes a session up as it is, and answers what it waits for until nothing is left to answer. Throws
 * a `CliError` where the work was not done: kinds `waiting`, `stuck`, `denied`, `stopped` and `unknown` among others.
 */
export async function runTask(context: Context, options: RunOptions, words: string[]): Promise<void> {
  const [tools, toolTimeout] = [readToolFlags(options.tool), readToolTimeout(options.toolTimeout)]
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const policy = await readPolicyFlag(context, options.policy)
  const body = await readEvents(context, options, words)
  const resume = resumption(context, parts.params.session)
  const progress = { isBegun: body === undefined }
  const caller = createCaller(context, settings, {
    wayOn: () => (progress.isBegun ? describeResume(resume).join('\n  ') : undefined),
  })
  const { dryRun, curl } = context.flags
  if ((dryRun || curl) && !body) throw usage('there is no task: --dry-run and --curl have nothing to show')
  if (body && (await caller.preview(endpoints.sendEvents, { ...parts, body }))) return
  if (!body) context.summary.resume = resume
  const audit = await openAudit(context, caller, { path: options.audit, session: parts.params.session })
  const asker = createAsker(context)
  try {
    const lasting = { ...context, output: printWhileRead(context.output) }
    const rules = { policy, tools }
    await work(lasting, { caller, parts, body, options, audit, asker, rules, toolTimeout, resume, progress })
  } finally {
    await asker.close()
    audit.close()
  }
}

type Setting = Pick<ConstructorParameters<typeof Responder>[0], 'caller' | 'audit' | 'asker' | 'rules'>

interface Work extends Setting {
  parts: SessionParts
  body: Uint8Array | undefined
  options: RunOptions
  toolTimeout: number
  resume: string[]
  progress: Progress
}

async function work(
  context: Context,
  { parts, body, options, toolTimeout, resume, progress, ...setting }: Work,
): Promise<void> {
  const { caller } = setting
  const session = parts.params.session
  const follower = body
    ? await openBefore(context, caller, { ...parts, body })
    : await openFollower(context, caller, parts, { needsPast: true })
  try {
    const fate = `the session goes on; ${describeResume(resume).join('\n  ')}`
    const { state } = follower
    const responder = new Responder({
      ...setting,
      context,
      parts,
      state,
      fate,
      toolTimeout,
      waiting: () => (state.stop?.kind === 'waiting' ? state.pending : []),
    })
    const sent = body && (await sendTask(context, caller, { parts, body, progress, resume, fate }))
    await printTranscript(context, follower, {
      session,
      print: createEventPrinter(context, { ids: options.ids ?? false }),
      ids: options.ids,
      sent,
      certain: body && 'the task was accepted',
      react: (items) => responder.react(items),
      fate,
    }).finally(() => showSum(context, responder))
    const failure = responder.failure()
    if (failure) throw failure
  } catch (error) {
    throw explainFailure(error, {
      hasTask: body !== undefined && progress.isBegun,
      ...progress,
      resume,
      isLate: isLate(context, caller),
    })
  } finally {
    follower.close()
  }
}

/** The last line of a run, on a terminal. */
function showSum({ host, note, timers, start }: Context, responder: Responder): void {
  const seconds = Math.max(0, (timers.now() - start) / 1000).toFixed(1)
  if (host.stderr.isTerminal) note(`${responder.describe()}; ${seconds} s`)
}

const isLate = ({ timers }: Context, { deadline }: Caller) => deadline > 0 && timers.now() >= deadline

interface Task {
  parts: SessionParts
  body: Uint8Array
  progress: Progress
  resume: string[]
  fate: string
}

/** Sends the task once; returns its events as they will be shown. */
async function sendTask(
  context: Context,
  caller: Caller,
  { parts, body, progress, resume, fate }: Task,
): Promise<SessionEvent[]> {
  const onAccepted = () => {
    progress.isBegun = true
    context.summary.resume = resume
    context.calls.sayInstead(() => `the task was accepted; ${fate}`)
  }
  const events = await caller.call(endpoints.sendEvents, { ...parts, body }, (answer) =>
    readReceipt(context, answer, { isPrinted: false, onAccepted }),
  )
  return sentEvents(body, events)
}
