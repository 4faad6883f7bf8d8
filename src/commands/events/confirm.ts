import type { Command } from 'commander'
import { createCaller } from '../../calls/caller.ts'
import { readSettings } from '../../calls/settings.ts'
import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { findPending, type Pending, readPending } from '../../sessions/confirming/pending.ts'
import { askVerdicts } from '../../sessions/confirming/verdicts.ts'
import { type DeliveryOptions, deliverEvents } from '../../sessions/sending/deliver.ts'
import { checkEvents } from '../../sessions/sending/read-events.ts'
import { declareSessionFlags, type SessionOptions, sessionParts } from '../../sessions/session.ts'

interface ConfirmOptions extends SessionOptions, DeliveryOptions {
  allow?: boolean
  deny?: boolean
  message?: string
  pending?: boolean
  input?: string
}

export function declare(command: Command): void {
  command.argument('[tool-use-id...]', 'the tool uses to answer')
  declareSessionFlags(command)
  command
    .option('--allow', 'allow them')
    .option('--deny', 'deny them')
    .option('--message <text>', 'why they are denied, or @FILE')
    .option('--pending', 'answer those that the service says are waiting')
    .option(
      '-i, --input <file>',
      'a session.status_idle event or a list of events, from a file or - for stdin',
    )
    .option('--ids', 'print ids only; with --follow the ids of the tool uses that wait')
    .option('--follow', 'then follow the session until it comes to rest')
}

export const notes = [
  'Without ids it answers what stdin or -i shows to be waiting. Without --allow and --deny it asks for each, on a terminal.',
]

export const examples = [
  'parley events confirm -s sesn_1 toolu_1 --allow',
  "parley events confirm -s sesn_1 --pending --deny --message 'not today'",
  'parley events list -s sesn_1 --raw | parley events confirm -s sesn_1 --allow',
]

export async function run(context: Context, options: ConfirmOptions, ids: string[]): Promise<void> {
  if (options.allow && options.deny) throw usage('--allow and --deny exclude each other')
  if (options.message !== undefined && !options.deny) throw usage('--message goes with --deny only')
  const places = [ids.length > 0, options.pending, options.input !== undefined]
  if (places.filter(Boolean).length > 1) throw usage('ids, --pending and -i exclude each other')
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const confirmations = await gatherConfirmations()
  checkEvents(
    context,
    confirmations.map((text) => JSON.parse(text)),
    undefined,
  )
  const body = `{"events":[${confirmations.join(',')}]}`
  await deliverEvents(context, settings, { ...parts, body: Buffer.from(body) }, options)

  async function gatherConfirmations(): Promise<string[]> {
    const { given, pending } = await gatherPending()
    if (given.length > 0) {
      if (options.allow || options.deny)
        throw usage('the confirmations were given with their verdicts: leave out --allow and --deny')
      return given
    }
    if (pending.length === 0) throw usage('nothing waits for an answer')
    if (options.allow || options.deny) {
      const message =
        options.message === undefined ? undefined : await context.input.value(options.message, '--message')
      return pending.map(({ id }) => confirmation(id, options.allow ?? false, message))
    }
    const verdicts = await askVerdicts(context, pending)
    return verdicts.map(({ id, isAllowed }) => confirmation(id, isAllowed))
  }

  async function gatherPending(): Promise<Pending> {
    if (ids.length > 0) return { given: [], pending: [...new Set(ids)].map((id) => ({ id })) }
    const isAsked = !options.allow && !options.deny
    if (!options.pending) return readPending(context, options.input, { isAsked })
    if (context.flags.dryRun || context.flags.curl)
      throw usage('--dry-run and --curl send nothing, so they cannot ask what is pending: name the ids')
    return findPending(context, createCaller(context, settings), { parts, isAsked })
  }
}

const confirmation = (id: string, isAllowed: boolean, message?: string) =>
  JSON.stringify({
    type: 'user.tool_confirmation',
    tool_use_id: id,
    result: isAllowed ? 'allow' : 'deny',
    ...(message === undefined ? {} : { deny_message: message }),
  })
