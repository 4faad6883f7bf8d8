import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { Caller } from '../../http/call.ts'
import { refusesSecret } from '../../http/retry.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { isToldForGood } from '../../wire/sessions/events-page.ts'
import { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Follower, FollowOptions } from '../following/follower.ts'
import type { SessionParts } from '../session.ts'
import { goesOn, sessionCommand } from '../session-command.ts'
import { isWork } from '../session-state.ts'
import { printReceipt, readReceipt } from './receipt.ts'

export interface DeliveryOptions {
  ids?: boolean
  follow?: boolean
}

/** Events that a person has just decided on, as far as the session still asks for them. */
export interface LatestEvents {
  body: Uint8Array
  /** A line for each decision, in place of the table of what was accepted. */
  words: readonly string[]
  /** Something stays open, so that the agent does not go on. */
  isPart: boolean
}

interface DeliveryPrinting extends DeliveryOptions {
  markdown: boolean
}

const accepted = 'the event was accepted'

/**
 * Sends a body of events once, and prints them as the service returns them, or follows the session. If the events are a
 * function it is called right before, and nothing is sent if it returns nothing.
 */
export async function deliverEvents(
  context: Context,
  caller: Caller,
  parts: SessionParts,
  given: Uint8Array | (() => Promise<LatestEvents | undefined>),
  { ids = false, follow = false, markdown }: DeliveryPrinting,
): Promise<void> {
  const isAsked = typeof given === 'function'
  if (!isAsked && (await caller.preview(endpoints.sendEvents, { ...parts, body: given }))) return
  const session = parts.params.session
  const follower = follow ? await openBefore(context, caller, parts) : undefined
  let isAccepted = false
  try {
    const latest = isAsked ? await given() : undefined
    const body = isAsked ? latest?.body : given
    if (!body) return
    const events = await caller.call(endpoints.sendEvents, { ...parts, body }, (response) =>
      readReceipt(context, response, {
        isPrinted: !follow,
        onAccepted() {
          isAccepted = true
          context.calls.sayInstead(() => (follow ? goesOn(context, session) : undefined), accepted)
          for (const line of latest?.words ?? []) context.tell(context.wrap(line))
        },
      }),
    )
    if (follower) {
      const sent = sentEvents(body, events)
      const { followAndPrint } = await loadTranscript()
      await followAndPrint(context, follower, { session, ids, markdown, certain: accepted, sent })
    } else {
      const isShown = context.output.isTerminal && !ids && !context.flags.raw
      const isTold = isShown && latest !== undefined && !context.flags.quiet
      if (!isTold) await printReceipt(context, events, ids)
      if (isShown && !latest?.isPart && eventsOf(body).some(isWork))
        context.note(`to see the answer: ${sessionCommand(context, 'follow', session)} --history`)
    }
  } catch (error) {
    throw error instanceof CliError && isAccepted
      ? afterAcceptance(error, sessionCommand(context, 'follow', session))
      : error
  } finally {
    follower?.close()
  }
}

const loadTranscript = () => import('../following/transcript.ts')

/** Opens a follower before anything is sent. A failure says that nothing was. */
export async function openBefore(
  context: Context,
  caller: Caller,
  parts: SessionParts,
  options: FollowOptions = {},
): Promise<Follower> {
  // All that follows the session is loaded before anything is sent: a file may be missing.
  const [{ openFollower }] = await Promise.all([import('../following/follower.ts'), loadTranscript()])
  try {
    return await openFollower(context, caller, parts, options)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    // No request was made yet, so that the session is not to blame.
    if (error.details.fate === undefined && !error.details.deadline) throw error
    const kind = error.kind === 'unknown' || error.kind === 'stopped' ? 'not-sent' : error.kind
    const { status, consequence } = error.details
    // It says where the refused secret came from.
    const origin = refusesSecret(status) ? consequence : undefined
    const isLate = error.kind === 'stopped' && error.details.deadline
    const message = isLate
      ? 'the deadline passed before the session could be followed'
      : `the session cannot be followed: ${error.message}`
    throw new CliError(kind, message, {
      ...error.details,
      sent: 'no',
      consequence: origin === undefined ? 'nothing was sent' : `nothing was sent; ${origin}`,
    })
  }
}

/**
 * What was sent, as a session will show it: what a body says, with the ids of the receipt. What is not an event is left out.
 * If the receipt names other events than the body, those of the receipt count.
 */
export function sentEvents(body: Uint8Array, receipt: readonly SessionEvent[]): SessionEvent[] {
  const given = eventsOf(body)
  const isOfBody = given.length === receipt.length && given.every(({ type }, i) => type === receipt[i]?.type)
  if (isOfBody) return given.map((event, i) => ({ ...event, id: receipt[i]?.id }))
  return receipt.some(({ id }) => id !== undefined) ? [...receipt] : given
}

function eventsOf(body: Uint8Array): SessionEvent[] {
  const { events } = JSON.parse(new TextDecoder().decode(body)) as { events?: unknown }
  return (Array.isArray(events) ? events : []).flatMap((event) => SessionEvent.safeParse(event).data ?? [])
}

/** A failure that came after the events were accepted must not look like a reason to send them again. */
function afterAcceptance(error: CliError, command: string): CliError {
  const known = { sent: 'yes', retry: 'never' } as const
  if (error.kind === 'waiting' || error.kind === 'stuck') return error.with(known)
  if (error.kind === 'file')
    return error.with({ ...known, consequence: `${accepted}, only the output failed` })
  // The session is gone.
  if (error.details.status === 404) return error.with({ ...known, consequence: accepted })
  const way = `${accepted}; to follow the session: ${command}`
  const { consequence = way } = error.details
  // Any other kind would mean that the command can be run again, now or after a fix.
  if (error.kind === 'stopped') return error.with({ ...known, consequence })
  if (error.kind === 'response' || isToldForGood(error))
    return error.with({ ...known, retry: 'look-first', consequence })
  const { rawBody: __, retryAfter: ___, ...details } = error.details
  return new CliError('response', `the session could not be followed: ${error.message}`, {
    ...details,
    ...known,
    retry: 'look-first',
    consequence: way,
  })
}
