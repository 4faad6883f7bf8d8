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
import { briefly } from '../plain-name.ts'
import { sessionCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'
import type { Follower } from './follower.ts'
import { describeRun, Incidents } from './incidents.ts'
import { budgetReached, stillWaiting } from './stop-text.ts'

export interface TranscriptOptions {
  session: string
  /** stdout is for the ids of the tool uses that wait. */
  ids?: boolean
  /** On a terminal, what the agent says is laid out as Markdown. */
  markdown: boolean
  /** stdout is for the answer: what happens is shown on a terminal's stderr only. */
  isAside?: boolean
  /** The session is followed until it is terminated or deleted; absent if the command has no `--stay`. */
  stays?: boolean
  /** Events that were sent: only what comes after them is printed. */
  sent?: readonly SessionEvent[]
  /** Called after each part of news, and waited for; may reply to what waits. */
  react?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  /** By default those of the new events. */
  incidents?: Incidents
  /** The command of a run that goes on. */
  resume?: () => readonly string[]
}

/**
 * Follows a session until it stops, and prints its events. It drives a run: what waits is replied to by `react`, after each
 * part of news, and only then is there more to follow. Throws a `CliError` if the session stopped before its work was done:
 * kinds `waiting` and `stuck`; or of kind `stopped`.
 */
export async function followAndPrint(
  context: Context,
  follower: Follower,
  options: TranscriptOptions,
): Promise<void> {
  const { session, ids = false, markdown, isAside = ids, stays = false, sent, react, resume } = options
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
      // Outside of a terminal, too, it is said that nothing has happened yet.
      if (!hasBegun && (context.host.stderr.isTerminal || (state.isEmpty && !sent)))
        context.note(describeStart(state, options, context.timers.now()))
      hasBegun = true
      incidents.add(items)
      nameBackground(context, state, { session, named, isAnswered: react !== undefined })
      await react?.(items)
      if (ids && stays) await printWaiting(context, state, printed)
    }
    if (follower.isUndone)
      context.warn('the service does not show that it has worked on what was sent: its answer may come later')
    if (ids) await printWaiting(context, state, printed)
    await context.output.flush()
  } catch (error) {
    throw asStoppedFailure(error)
  } finally {
    context.summary.id = follower.turn.answer?.id
    context.summary.stopReason = state.stopReason
  }
  const { stop } = state
  if (stop?.kind === 'waiting') throw await stillWaiting(context, session, state, stop.ids)
  if (stop?.kind !== 'stuck' && stop?.kind !== 'ended') return
  if (stop.kind === 'stuck' && stop.reason === 'budget_reached')
    throw budgetReached(context, session, stop.budget).with({ resume: resume && [...resume()] })
  const category = stop.kind === 'stuck' && stop.category ? ` (${stop.category})` : ''
  throw new CliError('stuck', `${session} stopped: ${stop.reason}${category}`, {
    sent: 'yes',
    serviceMessage: stop.why,
  })
}

/**
 * Prints once what keeps a session from its end that no idle event shows: open workflow runs, and tool uses of child threads
 * that wait while the session works.
 */
function nameBackground(
  context: Context,
  state: SessionState,
  { session, named, isAnswered }: { session: string; named: Set<string>; isAnswered: boolean },
): void {
  for (const run of state.isBetweenRuns ? state.openRuns : []) {
    if (!named.has(run.id)) context.note(`waiting for the workflow run ${describeRun(run)} to end`)
    named.add(run.id)
  }
  if (isAnswered || state.stop) return
  for (const id of state.asked) {
    const command = `${sessionCommand(context, 'confirm', session)} --pending`
    if (!named.has(id)) context.note(`${briefly(id)} waits for an answer, to give it: ${command}`)
    named.add(id)
  }
}

/** What a person sees before the first event: what is followed, or since when and why the session is idle. */
function describeStart(
  { stop, stoppedAt, isEmpty }: SessionState,
  { session, sent, stays }: TranscriptOptions,
  now: number,
): string {
  if (isEmpty && !sent)
    return `nothing has happened in ${session} yet: waiting for its first event; Ctrl-C stops waiting`
  if (!stop) return `following ${session}; Ctrl-C stops following, the session goes on`
  const moment = stoppedAt && formatLocalTime(stoppedAt, now)
  if (stop.kind === 'ended') return `${session} ended${moment ? ` at ${moment}` : ''} (${stop.reason})`
  const why = stop.kind === 'waiting' ? 'tool uses wait for an answer' : stop.reason
  const idle = `${session} is idle${moment ? ` since ${moment}` : ''} (${why})`
  if (stays) return `${idle}; waiting for more events, Ctrl-C stops waiting`
  const hasStay = stays !== undefined && stop.kind !== 'waiting'
  return `${idle}${hasStay ? '; --stay waits for more events' : ''}`
}

/** Prints the ids of the tool uses that wait and were not printed yet. */
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
 * Prints events as they come: what an agent says as text, any other event as one line, and with `--raw` each as one
 * line of JSON. If stdout is for something else, a terminal's stderr shows each event as one dim line.
 */
export function createEventPrinter(
  context: Context,
  { isAside, markdown }: { isAside: boolean; markdown: boolean },
): (items: readonly EventItem[], state: SessionState) => Promise<void> {
  const { flags, host, output, style } = context
  const raw = createRawPrinter(output)
  const show = async (text: string) => {
    const printer = await createPrinter(context, markdown)
    printer.add(text)
    await printer.end()
  }
  const toDimLine = async (text: string, { columns }: StdStream) => {
    const { clip } = await import('../../io/width.ts')
    return style.dim(clip(text, columns || 80))
  }
  const print = async (item: EventItem, state: SessionState) => {
    const { event } = item
    if (isAside) {
      if (host.stderr.isTerminal)
        context.printLine(await toDimLine(`— ${describe(item, state)}`, host.stderr))
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

/** For a terminal. What happened to a tool use names its tool, which no other line beside it may show. */
function describe({ event }: EventItem, state: SessionState): string {
  const [, type = '', , text = ''] = toRow(event)
  const tool = state.toolUseOf(event)?.name
  if (!tool) return `${type} ${text}`
  return `${type} ${tool}${event.is_error === true ? ' failed' : ''}${text === '' ? '' : ': '}${text}`
}
