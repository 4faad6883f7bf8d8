import type { Context } from '../../context.ts'
import { CliError, createUsageErrorFromProblems, usageError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isToolUse, SessionEvent } from '../../wire/sessions/session-event.ts'
import { createWaitingError, formatResultCommand } from '../following/stop-text.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { formatBriefName } from '../plain-name.ts'
import { createConfirmation } from '../reply-events.ts'
import { type DeliveryOptions, deliverEvents, type EventsBody } from '../sending/delivery.ts'
import { checkEvents, getEventTexts, listRecordedEvents, readGiven } from '../sending/given-events.ts'
import { accessSession, type SessionAccess, type SessionOptions } from '../session.ts'
import { needsResult, SessionState, type ToolUse } from '../session-state.ts'
import { ConfirmationPrompt, canPrompt } from './confirmation-prompt.ts'
import { namesTool } from './shown-tool-use.ts'

export interface ConfirmOptions extends SessionOptions, DeliveryOptions {
  allow?: boolean
  deny?: boolean
  message?: string
  pending?: boolean
  input?: string
}

/**
 * Confirms waiting tool uses: the given ids, the tool uses in `-i` or stdin, or with `--pending` all tool
 * uses that the service lists as waiting.
 */
export async function confirmToolUses(
  context: Context,
  options: ConfirmOptions,
  ids: string[],
): Promise<void> {
  const { allow, deny, message, input } = options
  if (allow && deny) throw usageError('--allow and --deny exclude each other')
  const isBare = ids.length === 0 && input === undefined && !allow && !deny
  const pending = options.pending ?? (isBare && canPrompt(context))
  const sources = [ids.length > 0, pending, input !== undefined]
  if (sources.filter(Boolean).length > 1) throw usageError('ids, --pending and -i exclude each other')
  const access = await accessSession(context, options)
  const { markdown } = access.settings.values
  const send = (body: EventsBody) => deliverEvents(access, body, { ...options, markdown })
  let uses: PendingToolUse[] = [...new Set(ids)].map((id) => ({ id }))
  if (uses.length === 0 && !pending) {
    const given = await readConfirmInput(context, input)
    if ('body' in given) {
      if (allow || deny) throw usageError('the input already has the decisions: leave out --allow and --deny')
      return send(given.body)
    }
    uses = requirePending(access, given.record, options)
  }
  if (!allow && !deny) return askAndSend(access, uses, { ...options, pending }, send)
  if (pending) uses = await requireListed(access, await readRecord(access), options)
  if (allow) requireSingle(uses)
  const reason = message === undefined ? undefined : await context.input.readFlagValue(message, '--message')
  await send(toBody(uses.map(({ id }) => createConfirmation(id, allow ? 'allow' : 'deny', reason))))
}

/** Confirmations to send unchanged, or a recorded session that contains the waiting tool uses. */
type ConfirmInput = { body: Uint8Array } | { record: SessionRecord }

/**
 * Reads the events of a file or of stdin. Events with an idle event are a recorded session. Throws a usage
 * error.
 */
async function readConfirmInput(context: Context, path: string | undefined): Promise<ConfirmInput> {
  const { stdinKind } = context.input
  if (path === undefined && (stdinKind === 'terminal' || stdinKind === 'none'))
    throw usageError(
      'no tool uses: give their ids, --pending, or events as JSON through a pipe or with -i FILE',
    )
  const given = await readGiven(context.input, path ?? '-')
  const items = [...listRecordedEvents(given)]
  if (items.some(({ event }) => /^session\.(thread_)?status_idle$/.test(event.type))) {
    const record = new SessionRecord()
    for (const item of items) record.add(item)
    return { record }
  }
  const other = items.findIndex(({ event }) => event.type !== 'user.tool_confirmation')
  if (other >= 0) {
    const place = `${given.locate(other, '')} (${items[other]?.event.type})`
    throw usageError(
      `${given.name}: without a session.status_idle, all events must be confirmations: ${place} is not a user.tool_confirmation`,
    )
  }
  if (items.length === 0) throw usageError(`nothing waits for an answer: ${given.name} has no events`)
  checkEvents(
    items.map(({ event }) => event),
    given,
  )
  // The service's list cannot be sent as a body, so its events are put into a new body.
  const isBody = 'body' in given && getEventTexts(given).every((text, index) => text === items[index]?.text)
  const body = isBody ? given.body : `{"events":[${items.map(({ text }) => text).join(',')}]}`
  return { body: Buffer.from(body) }
}

function toBody(events: SessionEvent[]): Uint8Array {
  checkEvents(events)
  return Buffer.from(JSON.stringify({ events }))
}

/**
 * Prompts a person about the named tool uses, or all waiting ones, and sends the answers that are still
 * needed. Throws a `CliError` of kind `waiting` if a tool use stays open.
 */
async function askAndSend(
  access: SessionAccess,
  named: readonly PendingToolUse[],
  options: ConfirmOptions,
  send: (body: EventsBody) => Promise<void>,
): Promise<void> {
  const { context, parts } = access
  const { pending, follow } = options
  if (!canPrompt(context))
    throw usageError('give --allow or --deny: without a terminal, parley cannot prompt')
  const shown = await readRecord(access)
  const uses =
    named.length > 0 ? requireShown(access, shown, named) : await requireListed(access, shown, options)
  requireSingle(uses)
  const prompt = new ConfirmationPrompt(context, parts.inspectCommand)
  const questions = uses.map(({ id, name = '', text = '{}' }) => ({ id, name, text }))
  const verdicts = await prompt.ask(questions).finally(() => prompt.close())
  // Tool uses for which `--pending` cannot prompt stay open, too.
  const open = new Set([...uses.map(({ id }) => id), ...(pending ? shown.state.pending : [])])
  const answers: SessionEvent[] = []
  let latest = shown

  async function createLatestBody(): Promise<Uint8Array | undefined> {
    latest = await readRecord(access).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      const ids = [...verdicts.keys()].map((id) => formatBriefName(id)).join(', ')
      throw new CliError(error.kind, `${error.message}; your answer to ${ids} was not sent`, error.details)
    })
    for (const id of open) if (latest.findNewClosedReason(id, shown) !== undefined) open.delete(id)
    for (const use of uses) {
      const verdict = verdicts.get(use.id)
      const why = latest.findNewClosedReason(use.id, shown)
      if (!verdict) continue
      if (why !== undefined) context.messages.warn(`${use.id} is not answered: ${why}`)
      else if (!latest.isSame(use)) context.messages.warn(`${use.id} stays open: its input has changed`)
      else {
        answers.push(createConfirmation(use.id, verdict.decision, verdict.reason))
        open.delete(use.id)
      }
    }
    return answers.length > 0 ? toBody(answers) : undefined
  }

  if (verdicts.size > 0) await send(createLatestBody)
  // The follower has already reported whether the session still waits.
  if (answers.length > 0 && follow) return
  if (open.size > 0) {
    const failure = await createWaitingError(context, parts.params.session, latest.state, [...open])
    throw failure.with({ sent: answers.length > 0 ? 'yes' : 'no' })
  }
  if (answers.length === 0) context.messages.note('nothing was sent')
}

async function readRecord({ context, caller, parts }: SessionAccess): Promise<SessionRecord> {
  const { dryRun, curl } = context.flags
  if (dryRun || curl)
    throw usageError(
      '--dry-run and --curl send nothing, so they cannot read the session: give ids and a verdict',
    )
  const record = new SessionRecord()
  for await (const items of listOldestFirst(caller, parts)) for (const item of items) record.add(item)
  return record
}

/**
 * Returns the waiting tool uses that the session's last idle events list. Throws a `CliError` if an idle
 * event has no list, because the user must then name the tool uses.
 */
async function requireListed(
  access: SessionAccess,
  record: SessionRecord,
  options: ConfirmOptions,
): Promise<PendingToolUse[]> {
  const { state } = record
  if (state.unlisted.length > 0)
    throw await createWaitingError(access.context, access.parts.params.session, state, state.unlisted)
  return requirePending(access, record, options)
}

function requirePending(
  { context, parts }: SessionAccess,
  record: SessionRecord,
  { allow, deny }: ConfirmOptions,
): PendingToolUse[] {
  const uses = record.pending(context, parts.params.session, { isAsked: !allow && !deny })
  if (uses.length > 0) return uses
  throw usageError(
    `nothing waits ${record.state.pending.length > 0 ? 'that can be confirmed' : 'for an answer'}`,
  )
}

/**
 * Returns the tool uses that the user named, with their content from the session. Throws a usage error that
 * names each tool use for which nobody can be prompted.
 */
function requireShown(
  { context, parts }: SessionAccess,
  record: SessionRecord,
  named: readonly PendingToolUse[],
): PendingToolUse[] {
  const { session } = parts.params
  const uses = named.map(({ id }) => record.use(id))
  const problems = uses.flatMap((use) => {
    if (use.type === undefined) return [`shows no tool use ${use.id}`]
    const why = findUnconfirmableReason(context, session, use, { isAsked: true })
    if (why !== undefined) return why
    const over = record.findClosedReason(use.id)
    return over === undefined ? [] : [`${use.id} needs no answer: ${over}`]
  })
  if (problems.length > 0) throw createUsageErrorFromProblems(session, problems)
  return uses
}

/**
 * Throws a usage error for a tool use that the service sent with two inputs, because an allow could run
 * either of them.
 */
function requireSingle(uses: readonly PendingToolUse[]): void {
  const ids = uses.filter(({ isContradicted }) => isContradicted).map(({ id }) => id)
  if (ids.length > 0)
    throw usageError(`${ids.join(', ')}: sent twice with different inputs, so it can only be denied`)
}

/** A tool use that may be confirmed. All fields except its id may be unknown. */
type PendingToolUse = { id: string } & Partial<ToolUse>

/** The events of a session, from a list or from a file, in order. */
class SessionRecord {
  readonly state = new SessionState()
  /** Types of events other than tool uses, by id. */
  readonly #others = new Map<string, string>()

  add({ event, text }: EventItem): void {
    this.state.add(event, text)
    if (event.id !== undefined && !isToolUse(event)) this.#others.set(event.id, event.type)
  }

  use(id: string): PendingToolUse {
    return this.state.getToolUse(id) ?? { id, type: this.#others.get(id) }
  }

  /**
   * Returns the waiting tool uses that can be confirmed or are unknown. Prints why the others cannot be
   * confirmed.
   */
  pending(context: Context, session: string, { isAsked }: { isAsked: boolean }): PendingToolUse[] {
    return this.state.pending.flatMap((id) => {
      const use = this.use(id)
      const why =
        use.type === undefined ? undefined : findUnconfirmableReason(context, session, use, { isAsked })
      if (why !== undefined) context.messages.note(why)
      return why === undefined ? [use] : []
    })
  }

  /** Returns why a tool use no longer needs a reply, unless the earlier record has the same reason. */
  findNewClosedReason(id: string, earlier: SessionRecord): string | undefined {
    if (this.use(id).type === undefined) return 'the session no longer shows it'
    const why = this.findClosedReason(id)
    return why === earlier.findClosedReason(id) ? undefined : why
  }

  /**
   * Returns why a tool use no longer needs a reply. If the idle event has no list, every open tool use may
   * need one.
   */
  findClosedReason(id: string): string | undefined {
    return this.state.unlisted.includes(id) ? undefined : this.state.findClosedReason(id)
  }

  /** Returns whether a tool use still has the tool, server and input of an earlier record. */
  isSame({ id, text = '{}' }: PendingToolUse): boolean {
    this.state.addRepeated(SessionEvent.parse(JSON.parse(text)), text)
    return this.state.getToolUse(id)?.isContradicted !== true
  }
}

/**
 * Returns why a tool use cannot be confirmed, and what the user can do instead. `isAsked`: a person is
 * prompted, so the tool must have a name.
 */
function findUnconfirmableReason(
  context: Context,
  session: string,
  use: PendingToolUse,
  { isAsked }: { isAsked: boolean },
): string | undefined {
  const { id, type = '', text } = use
  if (needsResult(use))
    return `${id} is an ${type}: it needs a result, not a confirmation: ${formatResultCommand(context, session, type, [id])}`
  if (!/^agent\.(mcp_)?tool_use$/.test(type)) return `${id} cannot be confirmed: its type is ${type}`
  if (!isAsked || text === undefined || namesTool(text)) return undefined
  return `${id} is not answered: its tool has no name; --allow and --deny answer it`
}
