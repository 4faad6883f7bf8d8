import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { type Caller, createCaller } from '../../http/call.ts'
import { readSettings } from '../../settings/read-settings.ts'
import type { Settings } from '../../settings/schemas.ts'
import { stillWaiting } from '../following/stop-text.ts'
import { confirmation } from '../reply-events.ts'
import { type DeliveryOptions, deliverEvents, type Said } from '../sending/delivery.ts'
import { checkEvents } from '../sending/given-events.ts'
import { type SessionOptions, type SessionParts, sessionParts } from '../session.ts'
import { SessionState } from '../session-state.ts'
import { createAsker, describeDecision, requirePerson, type Verdict } from './asker.ts'
import { confirmByPolicy } from './by-policy.ts'
import {
  type ConfirmInput,
  findPending,
  lookUp,
  type PendingUse,
  readConfirmInput,
  type SessionRecord,
} from './pending.ts'

export interface ConfirmOptions extends SessionOptions, DeliveryOptions {
  allow?: boolean
  deny?: boolean
  message?: string
  pending?: boolean
  input?: string
  policy?: string
  audit?: string
}

/** Confirms tool uses that wait: by their ids, from `-i` or stdin, or with `--pending` those that the service lists. */
export async function confirmToolUses(
  context: Context,
  options: ConfirmOptions,
  ids: string[],
): Promise<void> {
  requireClear(options, ids, context)
  if (options.policy !== undefined)
    return confirmByPolicy(context, { ...options, policy: options.policy }, ids)
  const settings = await readSettings(context)
  const caller = createCaller(context, settings)
  const parts = sessionParts(context, settings, options)
  const calling = { context, caller, parts, options, values: settings.values }
  const found = await find(calling, ids)
  if (found.is === 'confirmations') return send(calling, takeGiven(context, options, found))
  if (found.uses.length === 0)
    throw usage(`nothing waits ${found.state.pending.length > 0 ? 'that can be confirmed' : 'for an answer'}`)
  const { allow, deny, message } = options
  if (!allow && !deny) return askAndSend(calling, found)
  if (allow) requireSingle(found.uses)
  const reason = message === undefined ? undefined : await context.input.value(message, '--message')
  const verdict: Verdict = { decision: allow ? 'allow' : 'deny', ...(reason === undefined ? {} : { reason }) }
  await sendVerdicts(calling, new Map(found.uses.map(({ id }) => [id, verdict])))
}

/** What one call of the command works with. */
interface Confirming {
  context: Context
  caller: Caller
  parts: SessionParts
  options: ConfirmOptions
  values: Settings
}

function send(
  { context, caller, parts, options, values }: Confirming,
  body: string,
  said?: Said,
): Promise<void> {
  const delivering = { ...options, markdown: values.markdown, said }
  return deliverEvents(context, caller, { ...parts, body: Buffer.from(body) }, delivering)
}

async function sendVerdicts(
  confirming: Confirming,
  verdicts: ReadonlyMap<string, Verdict>,
  said?: Said,
): Promise<void> {
  const events = [...verdicts].map(([id, { decision, reason }]) => confirmation(id, decision, reason))
  checkEvents(confirming.context, events)
  await send(confirming, JSON.stringify({ events }), said)
}

/** Throws a `CliError` of kind `waiting` if the person leaves some open. */
async function askAndSend(confirming: Confirming, found: SessionRecord): Promise<void> {
  const { context, caller, parts, options } = confirming
  requirePerson(context)
  const { uses, state } = await lookUp(context, caller, parts, found)
  requireSingle(uses)
  const verdicts = await ask(context, parts, uses)
  const words = uses.flatMap(({ id, name = id }) => {
    const verdict = verdicts.get(id)
    return verdict ? [describeDecision(context.style, name, verdict)] : []
  })
  const left = uses.map(({ id }) => id).filter((id) => !verdicts.has(id))
  if (verdicts.size > 0) await sendVerdicts(confirming, verdicts, { words, isPart: left.length > 0 })
  const { dryRun, curl } = context.flags
  // Who follows the session has seen whether it still waits.
  if (verdicts.size > 0 && (options.follow || dryRun || curl)) return
  if (left.length === 0) return
  const failure = await stillWaiting(context, parts.params.session, state, { ids: left })
  throw failure.with({ sent: verdicts.size > 0 ? 'yes' : 'no' })
}

function requireClear(options: ConfirmOptions, ids: string[], { flags }: Context): void {
  const { allow, deny, pending, input } = options
  if (allow && deny) throw usage('--allow and --deny exclude each other')
  requireAlone(options, flags)
  const places = [ids.length > 0, pending, input !== undefined]
  if (places.filter(Boolean).length > 1) throw usage('ids, --pending and -i exclude each other')
}

/** A policy takes the place of all other flags that decide. */
function requireAlone(
  { policy, allow, deny, message, follow }: ConfirmOptions,
  { dryRun, curl }: Context['flags'],
): void {
  if (policy === undefined) return
  if (allow || deny || message !== undefined) throw usage('--policy excludes --allow, --deny and --message')
  if (follow) throw usage("--policy excludes --follow: 'parley events run' without a task does both")
  if (dryRun || curl) throw usage('--dry-run and --curl send nothing, so they cannot ask what is pending')
}

async function find({ context, caller, parts, options }: Confirming, ids: string[]): Promise<ConfirmInput> {
  const { allow, deny, pending, input } = options
  const isNamed = ids.length > 0
  if ((isNamed || pending) && !allow && !deny) requirePerson(context)
  if (isNamed)
    return { is: 'record', uses: [...new Set(ids)].map((id) => ({ id })), state: new SessionState() }
  if (!pending) return readConfirmInput(context, parts.params.session, input)
  if (context.flags.dryRun || context.flags.curl)
    throw usage('--dry-run and --curl send nothing, so they cannot ask what is pending: name the ids')
  return findPending(context, caller, parts)
}

/** The body of confirmations that were given whole. */
function takeGiven(
  context: Context,
  { allow, deny }: ConfirmOptions,
  { text, body, events }: ConfirmInput & { is: 'confirmations' },
): string {
  if (allow || deny) throw usage('the input already says allow or deny: leave out --allow and --deny')
  checkEvents(
    context,
    events.map((event) => JSON.parse(event)),
    text,
  )
  return body
}

async function ask(
  context: Context,
  { look }: SessionParts,
  uses: readonly PendingUse[],
): Promise<Map<string, Verdict>> {
  const asker = createAsker(context, look)
  try {
    return await asker.ask(uses)
  } finally {
    await asker.close()
  }
}

/** Nobody knows what an allowance of a tool use would allow that is shown with two inputs. */
function requireSingle(uses: PendingUse[]): void {
  const ids = uses.filter(({ isContradicted }) => isContradicted).map(({ id }) => id)
  if (ids.length > 0)
    throw usage(`${ids.join(', ')}: shown twice with different inputs, so it can only be denied`)
}
