import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { type Caller, createCaller } from '../../http/call.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { confirmation } from '../reply-events.ts'
import { type DeliveryOptions, deliverEvents } from '../sending/delivery.ts'
import { checkEvents } from '../sending/given-events.ts'
import { type SessionOptions, type SessionParts, sessionParts } from '../session.ts'
import { createAsker, type Verdict } from './asker.ts'
import { confirmByPolicy } from './by-policy.ts'
import { type ConfirmInput, findPending, type PendingUse, readConfirmInput } from './pending.ts'

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
  const found = await find(context, caller, { parts, options, ids })
  const body =
    found.is === 'confirmations'
      ? takeGiven(context, options, found)
      : await decide(context, options, found.uses)
  await deliverEvents(context, caller, { ...parts, body: Buffer.from(body) }, options)
}

function requireClear(options: ConfirmOptions, ids: string[], { flags }: Context): void {
  const { allow, deny, message, pending, input } = options
  if (allow && deny) throw usage('--allow and --deny exclude each other')
  if (message !== undefined && !deny) throw usage('--message works only with --deny')
  requireAlone(options, flags)
  const places = [ids.length > 0, pending, input !== undefined]
  if (places.filter(Boolean).length > 1) throw usage('ids, --pending and -i exclude each other')
}

/** A policy takes the place of all other flags that decide. */
function requireAlone(
  { policy, audit, allow, deny, message, follow }: ConfirmOptions,
  { dryRun, curl }: Context['flags'],
): void {
  if (policy === undefined) {
    if (audit !== undefined) throw usage('--audit works only with --policy')
    return
  }
  if (allow || deny || message !== undefined) throw usage('--policy excludes --allow, --deny and --message')
  if (follow) throw usage("--policy excludes --follow: 'parley events run' without a task does both")
  if (dryRun || curl) throw usage('--dry-run and --curl send nothing, so they cannot ask what is pending')
}

async function find(
  context: Context,
  caller: Caller,
  { parts, options, ids }: { parts: SessionParts; options: ConfirmOptions; ids: string[] },
): Promise<ConfirmInput> {
  if (ids.length > 0) return { is: 'record', uses: [...new Set(ids)].map((id) => ({ id })) }
  if (!options.pending) return readConfirmInput(context, options.input)
  if (context.flags.dryRun || context.flags.curl)
    throw usage('--dry-run and --curl send nothing, so they cannot ask what is pending: name the ids')
  return { is: 'record', uses: await findPending(context, caller, parts) }
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

/** The body that says what the flags say, or a person. */
async function decide(
  context: Context,
  { allow, deny, message }: ConfirmOptions,
  uses: PendingUse[],
): Promise<string> {
  if (uses.length === 0) throw usage('nothing waits for an answer')
  if (!deny) requireSingle(uses)
  const reason = message === undefined ? undefined : await context.input.value(message, '--message')
  const given: Verdict | undefined = allow ? 'allow' : deny ? 'deny' : undefined
  const verdicts = given ? new Map(uses.map(({ id }) => [id, given])) : await ask(context, uses)
  const events = [...verdicts].map(([id, result]) => confirmation(id, result, reason))
  checkEvents(context, events, undefined)
  return JSON.stringify({ events })
}

async function ask(context: Context, uses: PendingUse[]): Promise<Map<string, Verdict>> {
  const asker = createAsker(context)
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
