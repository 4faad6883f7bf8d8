import type { Context } from '../../context.ts'
import { usage, usageProblems } from '../../errors.ts'
import { type Caller, createCaller } from '../../http/call.ts'
import { readSettings } from '../../settings/read-settings.ts'
import type { Settings } from '../../settings/schemas.ts'
import { stillWaiting } from '../following/stop-text.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { confirmation } from '../reply-events.ts'
import { type DeliveryOptions, deliverEvents, type LatestEvents } from '../sending/delivery.ts'
import { checkEvents } from '../sending/given-events.ts'
import { type SessionOptions, type SessionParts, sessionParts } from '../session.ts'
import { Asker, describeDecision, requirePerson, type Verdict, withUnsent } from './asker.ts'
import { readConfirmInput } from './confirm-input.ts'
import { type PendingUse, SessionRecord, whyUnconfirmable } from './session-record.ts'

export interface ConfirmOptions extends SessionOptions, DeliveryOptions {
  allow?: boolean
  deny?: boolean
  message?: string
  pending?: boolean
  input?: string
}

/** What one call of the command works with. */
interface Confirming {
  context: Context
  caller: Caller
  parts: SessionParts
  options: ConfirmOptions
  values: Settings
}

/** Confirms tool uses that wait: by their ids, from `-i` or stdin, or with `--pending` those that the service lists. */
export async function confirmToolUses(
  context: Context,
  options: ConfirmOptions,
  ids: string[],
): Promise<void> {
  const { allow, deny, message, pending, input } = options
  const isAsking = !allow && !deny
  if (allow && deny) throw usage('--allow and --deny exclude each other')
  const places = [ids.length > 0, pending, input !== undefined]
  if (places.filter(Boolean).length > 1) throw usage('ids, --pending and -i exclude each other')
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const caller = createCaller(context, settings)
  const confirming = { context, caller, parts, options, values: settings.values }
  let uses: PendingUse[] = [...new Set(ids)].map((id) => ({ id }))
  if (uses.length === 0 && !pending) {
    const given = await readConfirmInput(context, input)
    if (!('record' in given)) {
      if (!isAsking) throw usage('the input already says allow or deny: leave out --allow and --deny')
      return send(confirming, given.body)
    }
    uses = requireWaiting(confirming, given.record)
  }
  if (isAsking) return askAndSend(confirming, uses)
  if (pending) uses = await findPending(confirming, await readSession(confirming))
  if (allow) requireSingle(uses)
  const reason = message === undefined ? undefined : await context.input.value(message, '--message')
  const verdict: Verdict = { decision: allow ? 'allow' : 'deny', ...(reason === undefined ? {} : { reason }) }
  await send(confirming, toBody(new Map(uses.map(({ id }) => [id, verdict]))))
}

function send(
  { context, caller, parts, options, values }: Confirming,
  events: Uint8Array | (() => Promise<LatestEvents | undefined>),
): Promise<void> {
  return deliverEvents(context, caller, parts, events, { ...options, markdown: values.markdown })
}

function toBody(verdicts: ReadonlyMap<string, Verdict>): Uint8Array {
  const events = [...verdicts].map(([id, { decision, reason }]) => confirmation(id, decision, reason))
  checkEvents(events)
  return Buffer.from(JSON.stringify({ events }))
}

/**
 * Asks a person about the named tool uses, or about all that wait, and sends the answers that are still asked for. Throws
 * a `CliError` of kind `waiting` if some stay open.
 */
async function askAndSend(confirming: Confirming, named: readonly PendingUse[]): Promise<void> {
  const { context, parts, options } = confirming
  requirePerson(context)
  const shown = await readSession(confirming)
  const uses =
    named.length > 0 ? requireShown(confirming, shown, named) : await findPending(confirming, shown)
  requireSingle(uses)
  const { verdicts, isWithdrawn } = await ask(confirming, uses, shown)
  // What --pending cannot ask about stays open, too.
  const open = new Set([...uses.map(({ id }) => id), ...(options.pending ? shown.state.pending : [])])
  const sent = new Map<string, Verdict>()
  let latest = shown

  async function readLatest(): Promise<LatestEvents | undefined> {
    latest = await readSession(confirming).catch((error: unknown) => {
      throw withUnsent(error, [...verdicts.keys()])
    })
    for (const id of open) if (latest.whyClosed(id, shown) !== undefined) open.delete(id)
    for (const use of uses) {
      const { id } = use
      const verdict = verdicts.get(id)
      const why = latest.whyClosed(id, shown)
      if (!verdict) continue
      if (why !== undefined) context.warn(`${id} is not answered: ${why}`)
      else if (!latest.isSame(use))
        context.warn(`${id} stays open: the session shows it with another input now`)
      else {
        sent.set(id, verdict)
        open.delete(id)
      }
    }
    if (sent.size === 0) return undefined
    const words = uses.flatMap(({ id, name = id }) => {
      const verdict = sent.get(id)
      return verdict ? [describeDecision(context.style, name, verdict)] : []
    })
    return { body: toBody(sent), words, isPart: open.size > 0 }
  }

  if (verdicts.size > 0 || isWithdrawn) await send(confirming, readLatest)
  // Who follows the session has seen whether it still waits.
  if (sent.size > 0 && options.follow) return
  if (open.size > 0) {
    const failure = await stillWaiting(context, parts.params.session, latest.state, [...open])
    throw failure.with({ sent: sent.size > 0 ? 'yes' : 'no' })
  }
  if (sent.size === 0) context.note('nothing was sent')
}

/** Asks, and says whether a question was withdrawn meanwhile. */
async function ask(confirming: Confirming, uses: readonly PendingUse[], shown: SessionRecord) {
  const { context, parts } = confirming
  const asker = new Asker(context, parts.look)
  const isOver = new AbortController()
  void watch({ ...confirming, parts: { ...parts, once: isOver.signal } }, uses, shown, asker)
  try {
    const verdicts = await asker.ask(uses.map(({ id, name = '', text = '{}' }) => ({ id, name, text })))
    return { verdicts, isWithdrawn: uses.some(({ id }) => asker.hasWithdrawn(id)) }
  } finally {
    isOver.abort()
    asker.close()
  }
}

/** How often the session is read while a person is asked. Milliseconds. */
const interval = 5_000

/** Withdraws each question that the session no longer asks, until that is over. It is read once more before anything is sent. */
async function watch(
  confirming: Confirming & { parts: { once: AbortSignal } },
  uses: readonly PendingUse[],
  shown: SessionRecord,
  asker: Asker,
): Promise<void> {
  const { context, parts } = confirming
  const open = new Set(uses)
  for (;;) {
    await context.timers.wait(interval, parts.once)
    const latest = parts.once.aborted ? undefined : await readSession(confirming).catch(() => undefined)
    if (parts.once.aborted) return
    for (const use of latest ? open : []) {
      const isSame = latest?.isSame(use)
      const why = latest?.whyClosed(use.id, shown) ?? (isSame ? undefined : 'it was shown with another input')
      if (why === undefined) continue
      open.delete(use)
      asker.withdraw(use.id, why)
    }
  }
}

async function readSession({ context, caller, parts }: Confirming): Promise<SessionRecord> {
  const { dryRun, curl } = context.flags
  if (dryRun || curl)
    throw usage('--dry-run and --curl send nothing, so they cannot read the session: give ids and a verdict')
  const record = new SessionRecord()
  for await (const items of listOldestFirst(caller, parts))
    for (const { event, text } of items) record.add(event, text)
  return record
}

/** What waits by the service's list. Of a rest that lists nothing a person names what is to be answered. */
async function findPending(confirming: Confirming, record: SessionRecord): Promise<PendingUse[]> {
  const { context, parts } = confirming
  const { state } = record
  if (state.unlisted.length > 0)
    throw await stillWaiting(context, parts.params.session, state, state.unlisted)
  return requireWaiting(confirming, record)
}

function requireWaiting({ context, parts }: Confirming, record: SessionRecord): PendingUse[] {
  const uses = record.pending(context, parts.params.session)
  if (uses.length > 0) return uses
  throw usage(`nothing waits ${record.state.pending.length > 0 ? 'that can be confirmed' : 'for an answer'}`)
}

/** The named tool uses as the session shows them. Throws a usage error that names each that cannot be asked about. */
function requireShown(
  { context, parts }: Confirming,
  record: SessionRecord,
  named: readonly PendingUse[],
): PendingUse[] {
  const { session } = parts.params
  const uses = named.map(({ id }) => record.use(id))
  const problems = uses.flatMap((use) => {
    if (use.type === undefined) return [`shows no tool use ${use.id}`]
    const why = whyUnconfirmable(context, session, use)
    if (why !== undefined) return why
    if (record.state.isAnswered(use.id)) return [`${use.id} has its answer already`]
    const over = record.whyOver(use.id)
    return over === undefined ? [] : [`${use.id} is not asked about: ${over}`]
  })
  if (problems.length > 0) throw usageProblems(session, problems)
  return uses
}

/** Nobody knows what an allowance would allow if the session shows a tool use with two inputs. */
function requireSingle(uses: readonly PendingUse[]): void {
  const ids = uses.filter(({ isContradicted }) => isContradicted).map(({ id }) => id)
  if (ids.length > 0)
    throw usage(`${ids.join(', ')}: shown twice with different inputs, so it can only be denied`)
}
