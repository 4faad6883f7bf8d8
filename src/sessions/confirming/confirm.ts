import type { Context } from '../../context.ts'
import { CliError, createUsageErrorFromProblems, usageError } from '../../errors.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import { createWaitingError, formatToolResultCommand } from '../following/stop-text.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import { readSessionState } from '../read-session.ts'
import { createConfirmationEvent } from '../reply-events.ts'
import { deliverEvents } from '../sending/delivery.ts'
import {
  describeMissingPages,
  listRecordedEvents,
  readInputEvents,
  requireValidEvents,
} from '../sending/input-events.ts'
import { createSessionClient, type SessionClient, type SessionOptions } from '../session.ts'
import { needsClientResult, SessionState, type ToolUse } from '../session-state.ts'
import { ConfirmationPrompt, canPrompt, describePromptObstacle } from './confirmation-prompt.ts'

interface ConfirmOptions extends SessionOptions {
  follow?: boolean
  allow?: boolean
  deny?: boolean
  message?: string
  pending?: boolean
  input?: string
}

/**
 * Allows or denies waiting tool uses. The user selects them by ids, by the events of `-i` or stdin, or by
 * `--pending`. `--pending` selects all tool uses that the service lists as waiting.
 */
export async function confirmToolUses(
  context: Context,
  options: ConfirmOptions,
  ids: string[],
): Promise<void> {
  const { allow, deny, message, input } = options
  const isBare = ids.length === 0 && input === undefined && !allow && !deny
  const pending = options.pending ?? (isBare && context.input.stdinKind === 'terminal')
  const access = await createSessionClient(context, options)
  const { markdown } = access.settings.values
  const send = (body: Uint8Array) => deliverEvents(access, body, { ...options, markdown })
  let uses: PendingToolUse[] = [...new Set(ids)].map((id) => ({ id }))
  if (uses.length === 0 && !pending) {
    const given = await readConfirmInput(context, input)
    if ('body' in given) {
      if (allow || deny) throw usageError('the input already has the decisions: leave out --allow and --deny')
      return send(given.body)
    }
    uses = requireListedToolUses(access, given)
  }
  if (!allow && !deny) return askAndSend(access, uses, { ...options, pending }, send)
  const state = pending ? await readState(access) : undefined
  if (state) uses = requireListedToolUses(access, state, pending)
  if (allow) refuseContradictedToolUses(uses)
  const reason = message === undefined ? undefined : await context.input.readFlagValue(message, '--message')
  await send(toBody(uses.map(({ id }) => createConfirmationEvent(id, allow ? 'allow' : 'deny', reason))))
  const open = state?.pending.filter((id) => uses.every((use) => use.id !== id)) ?? []
  // With --follow, `send` reports whether the session still waits.
  if (state && open.length > 0 && !options.follow) throw createWaitingError(access, state, open)
}

/**
 * Reads the events of a file or of stdin. If they contain an idle event, they are the recorded events of a
 * session; otherwise they must be confirmations. Throws a usage error for other events.
 */
async function readConfirmInput(
  context: Context,
  path: string | undefined,
): Promise<{ body: Uint8Array } | SessionState> {
  const { stdinKind } = context.input
  if (path === undefined && (stdinKind === 'terminal' || stdinKind === 'none'))
    throw usageError(
      'no tool uses: give their ids, --pending, or events as JSON through a pipe or with -i FILE',
    )
  const given = await readInputEvents(context.input, path ?? '-')
  /** True if the last page of the input has a next page; `undefined` if the input has no pages. */
  let lacksPages: boolean | undefined
  const onPage = (hasNext: boolean) => {
    lacksPages = hasNext
  }
  const items = [...listRecordedEvents(given, onPage)]
  // A later page may have the last idle event, or an answer to a tool use that waits in this page.
  if (lacksPages) throw usageError(describeMissingPages(path ?? '-'))
  if (items.some(({ event }) => /^session\.(thread_)?status_idle$/.test(event.type))) {
    const state = new SessionState()
    for (const { event, text } of items) state.add(event, text)
    return state
  }
  const other = items.findIndex(({ event }) => event.type !== 'user.tool_confirmation')
  if (other >= 0) {
    const place = `${given.locate(other, '')} (${items[other]?.event.type})`
    throw usageError(
      `${given.name}: give either recorded events with a session.status_idle event, or only user.tool_confirmation events; ${place} is not a user.tool_confirmation`,
    )
  }
  if (items.length === 0) throw usageError(`no tool use waits for an answer: ${given.name} has no events`)
  requireValidEvents(
    items.map(({ event }) => event),
    given,
  )
  // The service requires a body `{"events": […]}`, so pages of events are put into a new body.
  const isBody = lacksPages === undefined
  const body = isBody ? given.body : `{"events":[${items.map(({ text }) => text).join(',')}]}`
  return { body: Buffer.from(body) }
}

function toBody(events: SessionEvent[]): Uint8Array {
  requireValidEvents(events)
  return Buffer.from(JSON.stringify({ events }))
}

/**
 * Prompts a person about the named tool uses. If no tool use is named, prompts about all waiting tool uses.
 * Then lists the events again and sends the answers for which the session still waits. Throws a `CliError` of
 * kind `waiting` if a tool use stays open.
 */
async function askAndSend(
  access: SessionClient,
  named: readonly PendingToolUse[],
  options: ConfirmOptions,
  send: (body: Uint8Array) => Promise<void>,
): Promise<void> {
  const { context, parts } = access
  const { pending, follow } = options
  if (!canPrompt(context)) throw usageError(`give --allow or --deny: ${describePromptObstacle(context)}`)
  const prompted = await readState(access)
  const uses =
    named.length > 0
      ? requireNamedToolUses(access, prompted, named)
      : requireListedToolUses(access, prompted, pending)
  refuseContradictedToolUses(uses)
  const prompt = new ConfirmationPrompt(context, parts.inspectCommand)
  const questions = uses.flatMap(({ id, name = '', text }) => {
    if (text !== undefined) return { id, name, text }
    context.messages.warn(`${quoteAndShortenName(id)} stays open: the session does not show this tool use`)
    return []
  })
  // With `--pending`, a tool use that a confirmation cannot answer also stays open, so parley exits with 12.
  const open = new Set([...uses.map(({ id }) => id), ...(pending ? prompted.pending : [])])
  const createOpenError = (state: SessionState) => createWaitingError(access, state, [...open])
  const { decisions, latest } = await prompt.reportLostDuring(async () => {
    const decisions = await prompt
      .ask(questions)
      .catch((error: unknown) => {
        if (!(error instanceof CliError && error.details.deadline)) throw error
        const failure = createOpenError(prompted)
        const late = { retry: 'later', deadline: true } as const
        throw failure.with(late, `${failure.message}: ${error.message}`)
      })
      .finally(() => prompt.close())
    return { decisions, latest: decisions.size > 0 ? await readState(access) : prompted }
  })
  const answers: SessionEvent[] = []
  if (decisions.size > 0) {
    for (const id of open) if (findClosedReason(latest, id) !== undefined) open.delete(id)
    for (const use of uses) {
      const decided = decisions.get(use.id)
      const why = findClosedReason(latest, use.id)
      if (!decided) continue
      if (why !== undefined) context.messages.warn(`${quoteAndShortenName(use.id)} is not answered: ${why}`)
      else if (hasChanged(latest, use))
        context.messages.warn(`${quoteAndShortenName(use.id)} stays open: its input has changed`)
      else {
        answers.push(createConfirmationEvent(use.id, decided.decision, decided.reason))
        open.delete(use.id)
      }
    }
    if (answers.length > 0) await send(toBody(answers))
  }
  // With --follow, `send` reports whether the session still waits.
  if (answers.length > 0 && follow) return
  if (open.size > 0) throw createOpenError(latest)
  if (answers.length === 0) context.messages.note('nothing was sent')
}

async function readState(access: SessionClient): Promise<SessionState> {
  const { dryRun, curl } = access.context.flags
  if (dryRun || curl)
    throw usageError(
      '--dry-run and --curl send nothing, so they cannot read the session: give ids, and --allow or --deny',
    )
  return readSessionState(access)
}

/**
 * Returns the waiting tool uses that the last idle events list. Throws a `CliError` if these events list no
 * waiting tool use, because the user must then name the tool uses.
 */
function requireListedToolUses(
  access: SessionClient,
  state: SessionState,
  isOfService = false,
): PendingToolUse[] {
  const { unlisted, pending } = state
  if (unlisted.length > 0 && isOfService) throw createWaitingError(access, state, unlisted)
  if (unlisted.length > 0)
    throw usageError(
      'the last idle event of the input does not name the tool uses that wait: give their ids, or --pending to see which may wait',
    )
  const uses = pending.flatMap((id) => {
    const use = state.getToolUse(id)
    const why = use && findUnconfirmableReason(access, use)
    if (why) access.context.messages.warn(why)
    return why ? [] : [use ?? { id }]
  })
  if (uses.length > 0) return uses
  const isWaiting = pending.length > 0
  throw usageError(isWaiting ? 'no waiting tool use can be confirmed' : 'no tool use waits for an answer')
}

/**
 * Returns the tool uses that the user named, with their content from the session. Throws a usage error that
 * lists each tool use about which parley cannot prompt, with the reason.
 */
function requireNamedToolUses(
  access: SessionClient,
  state: SessionState,
  named: readonly PendingToolUse[],
): PendingToolUse[] {
  const problems = named.flatMap(({ id }) => {
    const use = state.getToolUse(id)
    if (!use) return [`there is no tool use ${id}`]
    const why = findUnconfirmableReason(access, use)
    if (why !== undefined) return why
    const closedReason = findClosedReason(state, id)
    return closedReason === undefined ? [] : [`${quoteAndShortenName(id)} needs no answer: ${closedReason}`]
  })
  if (problems.length > 0) throw createUsageErrorFromProblems(access.parts.params.session, problems)
  return named.map(({ id }) => state.getToolUse(id) ?? { id })
}

/**
 * Throws a usage error for tool uses that the service sent with two inputs. If allowed, such a tool could run
 * with either input.
 */
function refuseContradictedToolUses(uses: readonly PendingToolUse[]): void {
  const ids = uses.filter(({ isContradicted }) => isContradicted).map(({ id }) => id)
  if (ids.length > 0)
    throw usageError(
      `${ids.join(', ')}: the service sent two different tool uses with this id, so you can only deny it`,
    )
}

type PendingToolUse = Pick<ToolUse, 'id'> & Partial<ToolUse>

/**
 * Returns the reason why a tool use needs no reply, or `undefined` if it may need a reply. If the last idle
 * event needs replies but lists no tool use, every unanswered tool use may need a reply.
 */
const findClosedReason = (state: SessionState, id: string): string | undefined =>
  state.unlisted.includes(id) ? undefined : state.findClosedReason(id)

function hasChanged(latest: SessionState, { id, text = '{}' }: PendingToolUse): boolean {
  latest.addRepeated(SessionEvent.parse(JSON.parse(text)), text)
  const use = latest.getToolUse(id)
  return !use || use.isContradicted === true
}

function findUnconfirmableReason(access: SessionClient, use: ToolUse): string | undefined {
  const { id, type } = use
  if (!needsClientResult(use)) return undefined
  return `${quoteAndShortenName(id)} is an ${type}: it needs a result, not a confirmation; to send it: ${formatToolResultCommand(access, type, [id])}`
}
