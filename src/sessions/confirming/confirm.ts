import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { type Caller, createCaller } from '../../http/caller.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { confirmation } from '../reply-events.ts'
import { confirmByPolicy } from '../running/by-policy.ts'
import { checkEvents } from '../sending/check-events.ts'
import { type DeliveryOptions, deliverEvents } from '../sending/deliver.ts'
import { type SessionOptions, type SessionParts, sessionParts } from '../session.ts'
import { findPending, type Pending, readPending } from './pending.ts'
import { askVerdicts } from './verdicts.ts'

export interface ConfirmOptions extends SessionOptions, DeliveryOptions {
  allow?: boolean
  deny?: boolean
  message?: string
  pending?: boolean
  input?: string
  policy?: string
  audit?: string
}

/** Answers tool uses that wait: by their ids, from `-i` or stdin, or with `--pending` those that the service shows. */
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
  const found = await gatherPending(context, caller, { parts, options, ids })
  const confirmations = await decide(context, options, found)
  checkEvents(
    context,
    confirmations.map((text) => JSON.parse(text)),
    undefined,
  )
  const body = Buffer.from(`{"events":[${confirmations.join(',')}]}`)
  await deliverEvents(context, caller, { ...parts, body }, options)
}

function requireClear(options: ConfirmOptions, ids: string[], { flags }: Context): void {
  const { allow, deny, message, pending, input } = options
  if (allow && deny) throw usage('--allow and --deny exclude each other')
  if (message !== undefined && !deny) throw usage('--message works only with --deny')
  requireAlone(options, flags)
  const places = [ids.length > 0, pending, input !== undefined]
  if (places.filter(Boolean).length > 1) throw usage('ids, --pending and -i exclude each other')
}

/** A policy takes the place of all that says what to answer. */
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

async function gatherPending(
  context: Context,
  caller: Caller,
  { parts, options, ids }: { parts: SessionParts; options: ConfirmOptions; ids: string[] },
): Promise<Pending> {
  if (ids.length > 0) return { given: [], pending: [...new Set(ids)].map((id) => ({ id })) }
  const isAsked = !options.allow && !options.deny
  if (!options.pending) return readPending(context, options.input, { isAsked })
  if (context.flags.dryRun || context.flags.curl)
    throw usage('--dry-run and --curl send nothing, so they cannot ask what is pending: name the ids')
  return findPending(context, caller, { parts, isAsked })
}

/** The confirmations as JSON: as they were given, by the flags, or as a person says. */
async function decide(
  context: Context,
  { allow = false, deny, message }: ConfirmOptions,
  { given, pending }: Pending,
): Promise<string[]> {
  if (given.length > 0) {
    if (allow || deny) throw usage('the input already says allow or deny: leave out --allow and --deny')
    return given
  }
  if (pending.length === 0) throw usage('nothing waits for an answer')
  if (allow || deny) {
    const why = message === undefined ? undefined : await context.input.value(message, '--message')
    return pending.map(({ id }) => JSON.stringify(confirmation(id, allow, why)))
  }
  const verdicts = await askVerdicts(context, pending)
  return verdicts.map(({ id, isAllowed }) => JSON.stringify(confirmation(id, isAllowed)))
}
