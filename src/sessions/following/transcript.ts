import type { StdStream } from '../../basic-context.ts'
import type { Context } from '../../context.ts'
import { CliError, convertDeadlineFailure } from '../../errors.ts'
import { createAnswerPrinter } from '../../io/answer-printer.ts'
import { formatLocalTime } from '../../io/local-time.ts'
import { createRawPrinter } from '../../io/raw-printer.ts'
import { formatTsvLine } from '../../io/tsv.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readEventText } from '../../wire/sessions/session-event.ts'
import { toEventRow } from '../listing/rows.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import type { SessionClient } from '../session.ts'
import { formatSessionCommand } from '../session-command.ts'
import type { SessionState } from '../session-state.ts'
import type { Follower } from './follower.ts'
import { describeWorkflowRun, describeWorkflowRuns, SessionIncidents } from './incidents.ts'
import { createBudgetError, createWaitingError } from './stop-text.ts'

interface FollowAndPrintOptions {
  printer: EventPrinter
  /** Value of `--stay`. `undefined` if the command has no such flag. */
  followsForever?: boolean
  /**
   * Called after each batch of new events, for example to reply to tool uses. parley waits for the promise.
   */
  onBatch?: ((items: readonly EventItem[]) => Promise<void>) | undefined
  incidents?: SessionIncidents
}

export const missingAnswerText =
  'the answer may be missing: the session did not continue after its last workflow run had ended'

/**
 * Follows a session until it stops, and prints its events. Throws a `CliError` of kind `waiting` or `stuck`
 * if the session stops before its work is done. Throws one of kind `stopped` after a signal or the deadline.
 */
export async function followAndPrint(
  access: SessionClient,
  follower: Follower,
  options: FollowAndPrintOptions,
): Promise<void> {
  const { context, parts } = access
  const { session } = parts.params
  const { printer, onBatch, incidents = new SessionIncidents(context) } = options
  const { state } = follower
  context.reportData.figures.warnings.openWorkflowRuns = () => state.openRuns.length
  const reported = new Set<string>()
  let hasPrintedStart = false
  const printHeld = () => {
    context.messages.release()
    return printer.print([])
  }
  try {
    for await (const items of follower.readNewEvents()) {
      await printer.print(items)
      // If stderr is not a terminal, parley describes the session only if it has no events or has stopped.
      if (!hasPrintedStart && (context.host.stderr.isTerminal || state.isEmpty || state.stop))
        context.messages.note(describeSession(session, state, options))
      hasPrintedStart = true
      incidents.add(items)
      reportOpenWork(access, state, options, reported)
      await onBatch?.(items)
    }
    if (follower.seen.isWorkPending)
      context.messages.warn(
        'no event shows that the agent has worked on the sent events, so an answer may come later',
      )
    // `events run` may follow the session several times, so it prints this warning itself, after the last time.
    if (state.lacksIdleEvent && !onBatch) context.messages.warn(missingAnswerText)
    await printHeld()
    await context.output.flush()
  } catch (error) {
    // If stdout fails too, parley still reports the first failure.
    await printHeld().catch(() => {})
    throw addOpenRuns(convertDeadlineFailure(error), state)
  } finally {
    context.reportData.id = follower.task.answer?.id
    context.reportData.stopReason = state.stopReason
  }
  const { stop } = state
  if (stop?.kind === 'waiting') throw createWaitingError(access, state, stop.ids)
  if (stop?.kind !== 'stuck' && stop?.kind !== 'ended') return
  if (stop.kind === 'stuck' && stop.reason === 'budget_reached') throw createBudgetError(access)
  const category = stop.kind === 'stuck' && stop.category ? ` (${stop.category})` : ''
  throw new CliError('stuck', `${session} stopped: ${stop.reason}${category}`, {
    serviceMessage: stop.explanation,
  })
}

/** The notes about workflow runs are not printed with `--errors json` or `-q`, so the failure names the runs. */
function addOpenRuns(error: unknown, { openRuns }: SessionState): unknown {
  if (!(error instanceof CliError) || error.kind !== 'stopped' || openRuns.length === 0) return error
  return error.with({}, `${error.message}; open workflow runs: ${describeWorkflowRuns(openRuns)}`)
}

function reportOpenWork(
  access: SessionClient,
  state: SessionState,
  { onBatch, followsForever }: FollowAndPrintOptions,
  reported: Set<string>,
): void {
  const { messages } = access.context
  for (const run of state.isWaitingForRuns ? state.openRuns : []) {
    if (!reported.has(run.id))
      messages.note(`waiting for the workflow run ${describeWorkflowRun(run)} to end`)
    reported.add(run.id)
  }
  // `onBatch` replies to the waiting tool uses. If the session has stopped, the failure of the command names
  // them. parley prints a note about them only in other cases.
  if (onBatch || (state.stop && !followsForever)) return
  for (const id of state.answerable) {
    const command = `${formatSessionCommand(access, 'confirm')} --pending`
    if (!reported.has(id))
      messages.note(`${quoteAndShortenName(id)} waits for an answer; to answer: ${command}`)
    reported.add(id)
  }
}

function describeSession(
  session: string,
  { stop, lastStop, isEmpty }: SessionState,
  { followsForever }: FollowAndPrintOptions,
): string {
  if (isEmpty) return `${session} has no events yet: waiting for its first event; Ctrl-C stops waiting`
  if (!stop) return `following ${session}; Ctrl-C stops following, the session continues`
  const moment = lastStop?.processed_at && formatLocalTime(lastStop.processed_at)
  if (stop.kind === 'ended') return `${session} ended${moment ? ` at ${moment}` : ''} (${stop.reason})`
  const why = stop.kind === 'waiting' ? 'tool uses wait for an answer' : stop.reason
  const idle = `${session} is idle${moment ? ` since ${moment}` : ''} (${why})`
  if (followsForever) return `${idle}; waiting for more events, Ctrl-C stops waiting`
  const hasStay = followsForever !== undefined && stop.kind !== 'waiting'
  return `${idle}${hasStay ? '; --stay waits for more events' : ''}`
}

type EventPrinter = ReturnType<typeof createEventPrinter>

/**
 * Creates an object that prints events on stdout. With `--raw`, it prints every event as JSON. Otherwise, it
 * prints the agent's messages as text and any other event as one line. If stdout is reserved for the answer,
 * a terminal on stderr gets one dim line per event. The object holds back events for a terminal while a
 * prompt is open.
 */
export function createEventPrinter(
  context: Context,
  { isStdoutReserved = false, markdown }: { isStdoutReserved?: boolean; markdown: boolean },
) {
  const { flags, host, output, messages } = context
  const raw = createRawPrinter(output)
  const printMarkdown = async (text: string) => {
    const printer = await createAnswerPrinter(context, { isMarkdown: markdown })
    printer.add(text)
    await printer.end()
  }
  const toDimLine = async (text: string, { columns }: StdStream) => {
    const { clipToColumns } = await import('../../io/width.ts')
    return messages.style.dim(clipToColumns(text, columns || 80))
  }
  const printEvent = async (item: EventItem) => {
    const { event } = item
    const isShown = flags.verbose || !/^(session\.(status_running|usage)$|span\.)/.test(event.type)
    if ((isStdoutReserved || output.isTerminal) && !isShown) return
    if (isStdoutReserved) {
      if (host.stderr.isTerminal)
        context.messages.printLine(await toDimLine(`— ${describeEvent(item)}`, host.stderr))
      return
    }
    const message = event.type === 'agent.message' ? readEventText(event, true) : ''
    if (message !== '') return output.isTerminal ? printMarkdown(message) : output.write(`${message}\n`)
    if (!output.isTerminal) return output.write(formatTsvLine(toEventRow(item)))
    return output.write(`${await toDimLine(`· ${describeEvent(item)}`, host.stdout)}\n`)
  }
  const held: EventItem[] = []
  return {
    async print(items: readonly EventItem[]): Promise<void> {
      for (const item of items) held.push(item)
      if (output.isTerminal && messages.isHeld) return
      const due = held.splice(0)
      if (flags.raw && !isStdoutReserved) {
        for (const { text } of due) raw.add(`${text}\n`)
        return raw.write()
      }
      for (const item of due) await printEvent(item)
    },
  }
}

function describeEvent(item: EventItem): string {
  const [, type, , text] = toEventRow(item)
  return `${type} ${text}`
}
