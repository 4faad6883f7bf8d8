import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import { printRawBytes } from '../../io/raw-printer.ts'
import { createBodyCollector } from '../../wire/exchange.ts'
import { describeSchemaIssues, tryParseJson } from '../../wire/json/parse.ts'
import { createUnexpectedBodyFailure, isErrorEnvelope } from '../../wire/problem/problem.ts'
import { EventsReceipt, SessionEvent } from '../../wire/sessions/session-event.ts'

interface ReceiptOptions {
  isPrinted?: boolean
  /** Message if a signal ends the run after the service has accepted the events. */
  acceptedText?: string
  /** Called when it is certain that the service has accepted the events, before parley prints anything. */
  onAccepted?(): void
}

/**
 * Reads the receipt, which is the response to sent events, and returns the events in its field `data`. A
 * complete empty body with a 2xx status means that the service accepted the events. Throws a `CliError` for any
 * other body, because a login page or an error may also have status 200.
 */
export async function readReceipt(
  { flags, output }: Context,
  response: ReadableResponse,
  { isPrinted = false, acceptedText, onAccepted }: ReceiptOptions,
): Promise<SessionEvent[]> {
  const collected = createBodyCollector()
  let cut: CliError | undefined
  try {
    for await (const chunk of response.body) collected.add(chunk)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    cut = error
  }
  const bytes = collected.bytes()
  const text = new TextDecoder().decode(bytes)
  const receipt = cut ? undefined : tryParseJson(text)
  const parsed = EventsReceipt.safeParse(receipt)
  const isError = isErrorEnvelope(receipt)
  const isReceipt = parsed.success && !isError
  const isEmpty = text.trim() === ''
  const isAccepted = isReceipt || (isEmpty ? !cut : !isError && beginsAsReceipt(text))
  if (isAccepted) {
    response.accept(acceptedText)
    onAccepted?.()
  }
  if (flags.raw && isPrinted) await printRawBytes(output, bytes)

  if (!isReceipt && (!isEmpty || cut)) {
    const shape = parsed.error
      ? `has another shape than documented: ${describeSchemaIssues(parsed.error).join('; ')}`
      : ''
    const why = cut ? `is incomplete: ${cut.message}` : receipt === undefined ? 'is not JSON' : shape
    const { status } = response
    const known = { deadline: cut?.details.deadline }
    if (isAccepted)
      throw new CliError('response', `the event was accepted (${status}), but the response to it ${why}`, {
        ...known,
        consequence: 'do not send it again',
      })
    // If the response contains no error and no receipt, it is unknown whether the service accepted the events.
    const missing = `the response (${status}) does not list the accepted events: it ${why}`
    throw createUnexpectedBodyFailure(receipt ?? text, missing).with(known)
  }
  return parsed.data?.data ?? []
}

export function parseSentEvents(body: Uint8Array): SessionEvent[] {
  const { events } = JSON.parse(new TextDecoder().decode(body)) as { events?: unknown }
  return Array.isArray(events) ? events.flatMap((event) => SessionEvent.safeParse(event).data ?? []) : []
}

/**
 * Returns the sent events with the ids of the receipt (the response to the request). If the types differ,
 * returns the events of the receipt, or the sent events if the receipt has no ids.
 */
export function addIdsFromReceipt(
  given: readonly SessionEvent[],
  receipt: readonly SessionEvent[],
): readonly SessionEvent[] {
  const isOfBody = given.length === receipt.length && given.every(({ type }, i) => type === receipt[i]?.type)
  if (isOfBody) return given.map((event, i) => ({ ...event, id: receipt[i]?.id }))
  return receipt.some(({ id }) => id !== undefined) ? receipt : given
}

const beginsAsReceipt = (text: string) => /^\s*\{\s*"data"\s*:\s*\[/.test(text)
