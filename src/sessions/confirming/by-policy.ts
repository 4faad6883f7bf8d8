import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import { createCaller, printFailureBody } from '../../http/call.ts'
import { readSettings } from '../../settings/read-settings.ts'
import { stillWaiting } from '../following/stop-text.ts'
import { listOldestFirst } from '../listing/event-list.ts'
import { openAudit } from '../running/audit.ts'
import { Responder } from '../running/responder.ts'
import { readPolicyFlag } from '../running/run-flags.ts'
import { printReceipt } from '../sending/receipt.ts'
import { type SessionOptions, sessionParts } from '../session.ts'
import { SessionState } from '../session-state.ts'
import { createAsker } from './asker.ts'
import { readConfirmInput } from './pending.ts'

interface Options extends SessionOptions {
  policy: string
  audit?: string
  pending?: boolean
  input?: string
  ids?: boolean
}

/**
 * Replies by a policy to the tool uses that the service shows as waiting: those with the ids, those of the input, or all.
 * Throws a `CliError`: of kind `waiting` if some stay open.
 */
export async function confirmByPolicy(context: Context, options: Options, ids: string[]): Promise<void> {
  const settings = await readSettings(context)
  const parts = sessionParts(context, settings, options)
  const session = parts.params.session
  const policy = await readPolicyFlag(context, options.policy)
  const wanted = await readWanted(context, session, options, ids)
  const caller = createCaller(context, settings)
  const workplace = { address: settings.values.agentsUrl, session, deadline: caller.deadline }
  const audit = await openAudit(context, workplace, options.audit)
  const asker = createAsker(context, parts.look)
  try {
    const state = new SessionState()
    for await (const items of listOldestFirst(caller, parts))
      for (const { event, text } of items) state.add(event, text)
    // A rest that lists nothing leaves it to a person to name those that wait.
    const isNamed = ids.length > 0
    if (!isNamed && state.unlisted.length > 0)
      throw await stillWaiting(context, session, state, { ids: state.unlisted })
    const asked = () => (isNamed ? [...state.pending, ...state.unlisted] : state.pending)
    const waiting = () => asked().filter((id) => !wanted || wanted.includes(id))
    for (const id of wanted ?? [])
      if (!asked().includes(id)) context.note(`${id} does not wait for an answer`)
    if (waiting().length === 0) throw usage('nothing waits for an answer')
    const responder = new Responder({
      context,
      caller,
      parts,
      state,
      audit,
      asker,
      rules: { policy, tools: new Map() },
      toolTimeout: 0,
      waiting,
      isStopped: () => false,
      isPrinted: true,
    })
    const { calls, host, output, flags } = context
    calls.sayInstead(() => (calls.sent === 'no' ? 'nothing was sent' : 'nothing more is answered'))
    const named = await responder.reply()
    // A person was told of each decision in a line.
    const isTold = host.stderr.isTerminal && output.isTerminal && !options.ids && !flags.quiet
    await printReceipt(context, isTold ? [] : named, options.ids ?? false)
    if (waiting().length > 0) throw await stillWaiting(context, session, state, { ids: waiting() })
  } catch (error) {
    await printFailureBody(context, error)
    throw error
  } finally {
    await asker.close()
    audit.close()
  }
}

/** The ids to reply to, or nothing for all that wait. */
async function readWanted(
  context: Context,
  session: string,
  { pending, input }: Options,
  ids: string[],
): Promise<string[] | undefined> {
  if (ids.length > 0) return [...new Set(ids)]
  const isPiped = context.input.stdinKind === 'pipe' || context.input.stdinKind === 'file'
  if (pending || (input === undefined && !isPiped)) return undefined
  const found = await readConfirmInput(context, session, input)
  if (found.is === 'confirmations') throw usage('the input already says allow or deny: leave out --policy')
  return found.uses.map(({ id }) => id)
}
