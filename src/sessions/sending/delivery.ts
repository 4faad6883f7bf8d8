import { CliError } from '../../errors.ts'
import { isRefusedSecret } from '../../http/retry.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { isPermanentServiceError } from '../../wire/sessions/events-page.ts'
import { isTaskEvent, type SessionEvent } from '../../wire/sessions/session-event.ts'
import type { WorkHooks } from '../../work-tracker.ts'
import { Follower } from '../following/follower.ts'
import { createEventPrinter, followAndPrint } from '../following/transcript.ts'
import { createEventRowPrinter, printIds } from '../listing/rows.ts'
import { quoteAndShortenName } from '../quoted-name.ts'
import type { SessionClient } from '../session.ts'
import { describeFollowCommand, formatSessionCommand } from '../session-command.ts'
import { addIdsFromReceipt, parseSentEvents, readReceipt } from './receipt.ts'

const acceptedText = 'the event was accepted'

export async function deliverEvents(
  access: SessionClient,
  body: Uint8Array,
  { ids = false, follow = false, markdown }: { ids?: boolean; follow?: boolean; markdown: boolean },
): Promise<void> {
  const { context, caller, parts } = access
  if (await caller.preview(endpoints.sendEvents, { ...parts, body })) return
  const follower = follow ? new Follower(access) : undefined
  await follower?.open().catch(rethrowAsNotSent)
  let isAccepted = false
  let listed: SessionEvent[] = []
  const command = `${formatSessionCommand(access, 'follow')} --history`
  const hooks: WorkHooks = {
    onInterrupt: () => (follow && isAccepted ? describeFollowCommand(command) : undefined),
    explain: (failure) =>
      isAccepted
        ? explainAfterAcceptance(failure, command, listed, follower).with({ retry: 'never' })
        : explainRefusedTask(access, failure, parseSentEvents(body), follower),
  }
  await context.tracker.during(hooks, send).finally(() => follower?.close())

  async function send(): Promise<void> {
    listed = await caller.call(endpoints.sendEvents, { ...parts, body }, (response) =>
      readReceipt(context, response, {
        isPrinted: !follow,
        acceptedText,
        onAccepted() {
          isAccepted = true
        },
      }),
    )
    const sent = parseSentEvents(body)
    if (listed.length === 0)
      context.messages.note('the events were accepted, but the response does not list them')
    else {
      // A service that lists only some of the sent events may have refused the others.
      const missing = sent.length - listed.filter(({ type }) => type !== 'error').length
      if (missing > 0)
        context.messages.warn(
          `the response does not list ${missing} of the sent events: check with '${parts.inspectCommand}'`,
        )
    }
    if (follower) {
      follower.seen.addSent(addIdsFromReceipt(sent, listed))
      const printer = createEventPrinter(context, { markdown })
      await followAndPrint(access, follower, { printer })
    } else {
      if (ids) await printIds(context, listed)
      else if (!context.flags.raw && listed.length > 0)
        await createEventRowPrinter(context)(listed.map((event) => ({ event, text: JSON.stringify(event) })))
      await context.output.flush()
      // A reply to a tool use may not lead to an answer yet, because other tool uses may still wait. So this
      // note is printed only if a task was sent.
      if (context.output.isTerminal && !ids && !context.flags.raw && sent.some(isTaskEvent))
        context.messages.note(`to see the answer: ${command}`)
    }
  }
}

/** Throws the failure of a follower that could not be opened, and adds that parley sent nothing. */
export function rethrowAsNotSent(error: unknown): never {
  if (!(error instanceof CliError)) throw error
  const { delivery, deadline } = error.details
  // A failure before any request, for example of a file, is not about the session and stays unchanged. The
  // error of an endless list (kind `response`) has no delivery state either, but is about the session.
  if (delivery === undefined && !deadline && error.kind !== 'response') throw error
  const kind = error.kind === 'unknown' || error.kind === 'stopped' ? 'not-sent' : error.kind
  const isPastDeadline = error.kind === 'stopped' && deadline
  const message = isPastDeadline
    ? 'the deadline passed before the session could be followed'
    : `the session cannot be followed: ${error.message}`
  throw new CliError(kind, message, { ...error.details, sent: 'no' })
}

/**
 * Waiting tool uses block every task. So the failure of a refused task gets the commands that answer waiting
 * tool uses. Without a follower, parley has not read the session's state, so only the service's message may
 * mention them.
 */
export function explainRefusedTask(
  access: SessionClient,
  error: CliError,
  events: readonly SessionEvent[],
  follower: Follower | undefined,
): CliError {
  const { status, delivery, serviceMessage = '' } = error.details
  const isRefused = (status === 400 || status === 409) && delivery !== 'failed'
  if (!isRefused || !events.some(isTaskEvent)) return error
  if (follower) return error.with(follower.describeWaitingToolUses() ?? {})
  if (!/wait|pending|requires.action|confirm|approv|tool/i.test(serviceMessage)) return error
  const command = formatSessionCommand(access, 'confirm')
  return error.with({ consequence: `if tool uses wait for an answer: ${command} --pending` })
}

/** Adds to a failure that the service has accepted the events, so that the user does not send them again. */
function explainAfterAcceptance(
  error: CliError,
  command: string,
  listed: readonly SessionEvent[],
  follower: Follower | undefined,
): CliError {
  if (error.kind === 'waiting' || error.kind === 'stuck') return error
  if (error.kind === 'file') {
    const ids = listed.flatMap(({ id }) => id ?? []).map((id) => quoteAndShortenName(id))
    const named = ids.length > 0 ? `; ids: ${ids.join(', ')}` : ''
    return error.with({ consequence: `${acceptedText}, only the output failed${named}` })
  }
  if (isGone(error)) return explainFollowFailure(error, acceptedText)
  const hint = `${acceptedText}; to follow the session: ${command}`
  const waiting = follower?.describeWaitingToolUses()
  if (error.kind === 'stopped') {
    const { consequence = describeFollowCommand(command), ...more } = waiting ?? {}
    return error.with({ ...more, consequence: `${acceptedText}\n${consequence}` })
  }
  const { consequence = hint } = error.details
  // A failure of kind `response` may be about the response to the sent events, so it does not get the message
  // "could not be followed".
  if (error.kind === 'response') return error.with({ consequence })
  return explainFollowFailure(error, hint)
}

/**
 * Returns the failure for a session that cannot be followed after the service accepted the events. If the
 * user must fix the cause, the failure keeps its kind. Any other failure gets the kind `response`, because
 * its old kind may suggest repeating the command. If the service refused a secret, the source of the secret
 * is added to the consequence.
 */
export function explainFollowFailure(error: CliError, consequence: string): CliError {
  const { response: _, retryAfterSeconds: __, ...details } = error.details
  const isFinal = isPermanentServiceError(error)
  const message = isFinal ? error.message : `the session could not be followed: ${error.message}`
  const keepsKind = isFinal || isGone(error) || error.kind === 'credentials' || error.kind === 'payment'
  const kind = keepsKind ? error.kind : 'response'
  return new CliError(kind, message, { ...details, consequence: addSecretSource(consequence, error) })
}

/** If the service refused the secret, appends the consequence of the failure, which names the secret's source. */
export const addSecretSource = (consequence: string, failure: CliError): string =>
  isRefusedSecret(failure) && failure.details.consequence !== undefined
    ? `${consequence}\n${failure.details.consequence}`
    : consequence

const isGone = ({ kind, details: { status } }: CliError) => kind === 'refused' && status === 404
