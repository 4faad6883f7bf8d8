import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ReadableResponse } from '../../http/call.ts'
import { printRaw } from '../../io/raw-printer.ts'
import { decodeBodyText } from '../../wire/charset.ts'
import { collectBody, type HttpResponse } from '../../wire/exchange.ts'
import { describeIssues, tryParseJson } from '../../wire/json/parse.ts'
import { isErrorEnvelope, unexpectedBodyFailure } from '../../wire/problem/problem.ts'
import { EventsReceipt, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { createRowPrinter, printIds } from '../listing/rows.ts'

export interface ReceiptOptions {
  /** With `--raw` it is printed as it is. */
  isPrinted?: boolean
  /** Called once it is certain, before anything else can fail. */
  onAccepted?(): void
}

/**
 * Reads the response to events that were sent. An empty one with any 2xx is enough; any other has to be a receipt, since a
 * login page has status 200 too. Throws a `CliError`.
 */
export async function readReceipt(
  { flags, output }: Context,
  response: ReadableResponse,
  { isPrinted = false, onAccepted }: ReceiptOptions = {},
): Promise<SessionEvent[]> {
  const collected = collectBody()
  let cut: CliError | undefined
  try {
    for await (const chunk of response.body) collected.add(chunk)
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    cut = error
  }
  const bytes = collected.bytes()
  const text = decodeBodyText(bytes, response.headers['content-type'])
  const receipt = cut ? undefined : tryParseJson(text)
  const parsed = EventsReceipt.safeParse(receipt)
  const isError = isErrorEnvelope(receipt)
  const isReceipt = parsed.success && !isError
  const isEmpty = text.trim() === ''
  const isAccepted = isReceipt || (isEmpty ? !cut || isJson(response) : !isError && beginsAsReceipt(text))
  if (isAccepted) {
    response.accept()
    onAccepted?.()
  }
  if (flags.raw && isPrinted) await printRaw(output, bytes)

  if (!isReceipt && (!isEmpty || cut)) {
    const shape = parsed.error ? `has another shape: ${describeIssues(parsed.error).join('; ')}` : ''
    const why = cut ? `is incomplete: ${cut.message}` : receipt === undefined ? 'is not JSON' : shape
    const failure = isAccepted ? incomplete(response, why) : notReceipt(response, receipt ?? text, why)
    throw failure.with({ deadline: cut?.details.deadline })
  }
  return parsed.data?.data ?? []
}

/** Prints the accepted events, but with `--raw` nothing more. */
export async function printReceipt(context: Context, events: SessionEvent[], ids: boolean): Promise<void> {
  const { flags, output } = context
  if (ids) await printIds(context, events)
  else if (!flags.raw && events.length > 0) await createRowPrinter(context, { isEcho: true })(events)
  await output.flush()
}

const incomplete = ({ status }: HttpResponse, why: string) =>
  new CliError('response', `the event was accepted (${status}), but its receipt ${why}`, {
    consequence: 'do not send it again',
  })

/** What came instead of a receipt: nobody knows whether the service got the event, unless the response says it. */
const notReceipt = ({ status }: HttpResponse, body: unknown, why: string): CliError =>
  unexpectedBodyFailure(body, `the response (${status}) is not a receipt: it ${why}`)

/** A response without a type counts as JSON. */
const isJson = ({ headers: { 'content-type': type = '' } }: HttpResponse) =>
  type === '' || /\bjson\b/i.test(type)

/** Whether a text that is not JSON, or was cut, begins like a receipt. */
const beginsAsReceipt = (text: string) => /^\s*\{\s*"data"\s*:\s*\[/.test(text)
