import { createPrinter } from '../../content/layout.ts'
import type { Context } from '../../context.ts'
import { asStoppedFailure, CliError } from '../../errors.ts'
import { formatLocalTime } from '../../io/local-time.ts'
import type { StdStream } from '../../io/output.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { toTsv } from '../../io/tsv.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readMarkedText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { printIds, toRow } from '../listing/rows.ts'
import { formatBriefName } from '../plain-name.ts'
import { formatSessionCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'
import type { Follower } from './follower.ts'
import { describeRun, Incidents } from './incidents.ts'
import { createBudgetError, createWaitingError } from './stop-text.ts'

export interface TranscriptOptions {
  session: string
  /** stdout gets only the ids of waiting tool uses. */
  ids?: boolean
  /** Format the agent's messages as Markdown on a terminal. */
  markdown: boolean
  /** Print events only on a terminal's stderr, because stdout is reserved for the answer or ids. */
  isStdoutReserved?: boolean
  /**
   * Continue after the session stops, until it is terminated or deleted. `undefined` if the command has no
   * flag `--stay`.
   */
  followsForever?: boolean
  /** Sent events. Only events after them are printed. */
  sent?: readonly SessionEvent[]
  /** Called and awaited after each batch of new events. May reply to waiting tool uses. */
  react?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  /** Collected failures of the turn. By default only those in new events count. */
  incidents?: Incidents
  /** Returns the command that resumes the run. */
  resume?: () => readonly string[]
}

export const afterLastRun = 'the session did not continue after its last workflow run had ended'

/**
 * Follows a session until it stops, and prints its events. Throws a `CliError`: of kind `waiting` or `stuck`
 * if the session stopped before its work was done, or of kind `stopped`.
 */
export async function followAndPrint(
  context: Context,
  follower: Follower,
  options: TranscriptOptions,
): Promise<void> {
  const {
    session,
    ids = false,
    markdown,
    isStdoutReserved = ids,
    followsForever = false,
    sent,
    react,
    resume,
  } = options
  const { state } = follower
  const { incidents = new Incidents(context) } = options
  context.summary.figures.warnings.openWorkflowRuns = () => state.openRuns.length
  const reported = new Set<string>()
  const printEvents = createEventPrinter(context, { isStdoutReserved, markdown })
  const printed = new Set<string>()
  let hasBegun = false
  let hasNews = false
  try {
    for await (const items of follower.news(sent)) {
      hasNews ||= items.length > 0
      await printEvents(items, state)
      // In a pipe the line is printed only if the session has no events yet.
      if (!hasBegun && (context.host.stderr.isTerminal || (state.isEmpty && !sent)))
        context.messages.note(describeStart(state, options, context.host.timers.wallTime()))
      hasBegun = true
      incidents.add(items)
      reportBackground(context, state, { session, reported, isAnswered: react !== undefined })
      await react?.(items)
      if (ids && followsForever) await printWaiting(context, state, printed)
    }
    if (follower.isUndone)
      context.messages.warn(
        'the service does not show that it has worked on the sent events: an answer may come later',
      )
    // A script could take the empty transcript of a resumed run for the agent's answer.
    if (react && !hasNews && !isStdoutReserved) {
      const command = formatSessionCommand(context, 'list', session)
      context.messages.note(`nothing new has happened; to see the earlier events: ${command}`)
    }
    if (state.lacksIdleEvent) context.messages.warn(`${afterLastRun}: its answer may be missing`)
    if (ids) await printWaiting(context, state, printed)
    await context.output.flush()
  } catch (error) {
    throw asStoppedFailure(error)
  } finally {
    context.summary.id = follower.turn.answer?.id
    context.summary.stopReason = state.stopReason
  }
  const { stop } = state
  if (stop?.kind === 'waiting') throw await createWaitingError(context, session, state, stop.ids)
  if (stop?.kind !== 'stuck' && stop?.kind !== 'ended') return
  if (stop.kind === 'stuck' && stop.reason === 'budget_reached')
    throw createBudgetError(context, session, stop).with({ resume: resume && [...resume()] })
  const category = stop.kind === 'stuck' && stop.category ? ` (${stop.category})` : ''
  throw new CliError('stuck', `${session} stopped: ${stop.reason}${category}`, {
    sent: 'yes',
    serviceMessage: stop.why,
  })
}

/**
 * Reports once why a session continues although it sends no idle event: open workflow runs, or tool uses of
 * child threads that wait while the session works.
 */
function reportBackground(
  context: Context,
  state: SessionState,
  { session, reported, isAnswered }: { session: string; reported: Set<string>; isAnswered: boolean },
): void {
  for (const run of state.isBetweenRuns ? state.openRuns : []) {
    if (!reported.has(run.id))
      context.messages.note(`waiting for the workflow run ${describeRun(run)} to end`)
    reported.add(run.id)
  }
  if (isAnswered || state.stop) return
  for (const id of state.asked) {
    const command = `${formatSessionCommand(context, 'confirm', session)} --pending`
    if (!reported.has(id))
      context.messages.note(`${formatBriefName(id)} waits for an answer; to answer: ${command}`)
    reported.add(id)
  }
}

/** Describes the session before the first event: whether it is idle, since when and why. */
function describeStart(
  { stop, stoppedAt, isEmpty }: SessionState,
  { session, sent, followsForever }: TranscriptOptions,
  now: number,
): string {
  if (isEmpty && !sent)
    return `nothing has happened in ${session} yet: waiting for its first event; Ctrl-C stops waiting`
  if (!stop) return `following ${session}; Ctrl-C stops following, the session continues`
  const moment = stoppedAt && formatLocalTime(stoppedAt, now)
  if (stop.kind === 'ended') return `${session} ended${moment ? ` at ${moment}` : ''} (${stop.reason})`
  const why = stop.kind === 'waiting' ? 'tool uses wait for an answer' : stop.reason
  const idle = `${session} is idle${moment ? ` since ${moment}` : ''} (${why})`
  if (followsForever) return `${idle}; waiting for more events, Ctrl-C stops waiting`
  const hasStay = followsForever !== undefined && stop.kind !== 'waiting'
  return `${idle}${hasStay ? '; --stay waits for more events' : ''}`
}

/** Prints the ids of waiting tool uses, each once. */
async function printWaiting(context: Context, { stop }: SessionState, printed: Set<string>): Promise<void> {
  if (stop?.kind !== 'waiting') return
  const fresh = stop.ids.filter((id) => !printed.has(id))
  for (const id of fresh) printed.add(id)
  await printIds(
    context,
    fresh.map((id) => ({ id })),
  )
}

/**
 * Returns a function that prints events: the agent's messages as text, other events as one line each, and
 * with `--raw` every event as a JSON line. If stdout is reserved, a terminal's stderr gets one dim line per
 * event.
 */
export function createEventPrinter(
  context: Context,
  { isStdoutReserved, markdown }: { isStdoutReserved: boolean; markdown: boolean },
): (items: readonly EventItem[], state: SessionState) => Promise<void> {
  const { flags, host, output, messages } = context
  const raw = createRawPrinter(output)
  const show = async (text: string) => {
    const printer = await createPrinter(context, { isMarkdown: markdown })
    printer.add(text)
    await printer.end()
  }
  const toDimLine = async (text: string, { columns }: StdStream) => {
    const { clip } = await import('../../io/width.ts')
    return messages.style.dim(clip(text, columns || 80))
  }
  const print = async (item: EventItem, state: SessionState) => {
    const { event } = item
    const isShown = flags.verbose || !/^(session\.(status_running|usage)$|span\.)/.test(event.type)
    if ((isStdoutReserved || output.isTerminal) && !isShown) return
    if (isStdoutReserved) {
      if (host.stderr.isTerminal)
        context.messages.printLine(await toDimLine(`— ${describe(item, state)}`, host.stderr))
      return
    }
    const message = event.type === 'agent.message' ? readMarkedText(event) : ''
    if (message !== '') return output.isTerminal ? show(message) : output.write(`${message}\n`)
    if (!output.isTerminal) return output.write(toTsv(toRow(event)))
    return output.write(`${await toDimLine(`· ${describe(item, state)}`, host.stdout)}\n`)
  }
  return async (items, state) => {
    if (flags.raw && !isStdoutReserved) {
      for (const { text } of items) raw.add(`${text}\n`)
      return raw.write()
    }
    for (const item of items) await print(item, state)
  }
}

/**
 * Describes an event in a line for a terminal. A result also names its tool, because the lines around it may
 * not.
 */
function describe({ event }: EventItem, state: SessionState): string {
  const [, type = '', , text = ''] = toRow(event)
  const tool = state.findAnsweredToolUse(event)?.name
  if (!tool) return `${type} ${text}`
  return `${type} ${tool}${event.is_error === true ? ' failed' : ''}${text === '' ? '' : ': '}${text}`
}
