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
  /** stdout prints only the ids of waiting tool uses. */
  ids?: boolean
  /** On a terminal, messages of the agent are laid out as Markdown. */
  markdown: boolean
  /** stdout is reserved for the answer. Events are shown only on a terminal's stderr. */
  isAside?: boolean
  /** Follows the session until it is terminated or deleted. Absent if the command has no `--stay`. */
  followsForever?: boolean
  /** Events that were sent. Only later events are printed. */
  sent?: readonly SessionEvent[]
  /** Called and awaited after each batch of new events. The function may reply to waiting tool uses. */
  react?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  /** Default: the incidents of the new events. */
  incidents?: Incidents
  /** Returns the command that resumes the run. */
  resume?: () => readonly string[]
}

export const afterLastRun = 'the session did not continue after its last workflow run had ended'

/**
 * Follows a session until it stops, and prints its events. It also drives a run: `react` replies to waiting
 * tool uses after each batch of new events, before following continues. Throws a `CliError` of kind `waiting`
 * or `stuck` if the session stopped before its work was done, or `stopped`.
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
    isAside = ids,
    followsForever = false,
    sent,
    react,
    resume,
  } = options
  const { state } = follower
  const { incidents = new Incidents(context) } = options
  context.summary.figures.warnings.openWorkflowRuns = () => state.openRuns.length
  const named = new Set<string>()
  const printEvents = createEventPrinter(context, { isAside, markdown })
  const printed = new Set<string>()
  let hasBegun = false
  try {
    for await (const items of follower.news(sent)) {
      await printEvents(items, state)
      // A pipe also gets a line if the session has no events yet.
      if (!hasBegun && (context.host.stderr.isTerminal || (state.isEmpty && !sent)))
        context.messages.note(describeStart(state, options, context.host.timers.wallTime()))
      hasBegun = true
      incidents.add(items)
      nameBackground(context, state, { session, named, isAnswered: react !== undefined })
      await react?.(items)
      if (ids && followsForever) await printWaiting(context, state, printed)
    }
    if (follower.isUndone)
      context.messages.warn(
        'the service does not show that it has worked on the sent events: an answer may come later',
      )
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
    throw createBudgetError(context, session, stop.budget).with({ resume: resume && [...resume()] })
  const category = stop.kind === 'stuck' && stop.category ? ` (${stop.category})` : ''
  throw new CliError('stuck', `${session} stopped: ${stop.reason}${category}`, {
    sent: 'yes',
    serviceMessage: stop.why,
  })
}

/**
 * Prints once why the session has not ended although it sends no idle event: open workflow runs, and tool
 * uses of child threads that wait while the session works.
 */
function nameBackground(
  context: Context,
  state: SessionState,
  { session, named, isAnswered }: { session: string; named: Set<string>; isAnswered: boolean },
): void {
  for (const run of state.isBetweenRuns ? state.openRuns : []) {
    if (!named.has(run.id)) context.messages.note(`waiting for the workflow run ${describeRun(run)} to end`)
    named.add(run.id)
  }
  if (isAnswered || state.stop) return
  for (const id of state.asked) {
    const command = `${formatSessionCommand(context, 'confirm', session)} --pending`
    if (!named.has(id))
      context.messages.note(`${formatBriefName(id)} waits for an answer, to give it: ${command}`)
    named.add(id)
  }
}

/** Describes the session before the first event: its id, or why and how long it has been idle. */
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

/** Prints the ids of waiting tool uses that were not printed yet. */
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
 * Returns a function that prints events: messages of the agent as text, other events as one line, with
 * `--raw` as one JSON line each. If stdout is reserved, a terminal's stderr shows each event as one dim line.
 */
export function createEventPrinter(
  context: Context,
  { isAside, markdown }: { isAside: boolean; markdown: boolean },
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
    if ((isAside || output.isTerminal) && !isShown) return
    if (isAside) {
      if (host.stderr.isTerminal)
        context.messages.printLine(await toDimLine(`— ${describe(item, state)}`, host.stderr))
      return
    }
    const said = event.type === 'agent.message' ? readMarkedText(event) : ''
    if (said !== '') return output.isTerminal ? show(said) : output.write(`${said}\n`)
    if (!output.isTerminal) return output.write(toTsv(toRow(event)))
    return output.write(`${await toDimLine(`· ${describe(item, state)}`, host.stdout)}\n`)
  }
  return async (items, state) => {
    if (flags.raw && !isAside) {
      for (const { text } of items) raw.add(`${text}\n`)
      return raw.write()
    }
    for (const item of items) await print(item, state)
  }
}

/**
 * Describes an event on a terminal. A line about a tool use names its tool, because the lines around it may
 * not name the tool.
 */
function describe({ event }: EventItem, state: SessionState): string {
  const [, type = '', , text = ''] = toRow(event)
  const tool = state.findAnsweredToolUse(event)?.name
  if (!tool) return `${type} ${text}`
  return `${type} ${tool}${event.is_error === true ? ' failed' : ''}${text === '' ? '' : ': '}${text}`
}
