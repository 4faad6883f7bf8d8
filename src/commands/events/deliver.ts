import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { printRaw } from '../../terminal/raw-printer.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { EventsPage, type SessionEvent } from '../../wire/events.ts'
import { collect, type HttpResponse } from '../../wire/exchange.ts'
import { describeIssues, parseJson } from '../../wire/json.ts'
import { failureInBody, isErrorEnvelope } from '../../wire/problem.ts'
import { createCaller, preview, type RequestParts } from '../perform.ts'
import { openFollower } from './follower.ts'
import { printEvents, printIds } from './rows.ts'

export interface DeliveryOptions {
  ids?: boolean
  follow?: boolean
}

const accepted = 'the event was accepted'

/** Sends events once, prints what the service made of them, and follows the session where that was asked for. */
export async function deliverEvents(
  context: Context,
  settings: ResolvedSettings,
  parts: RequestParts,
  { ids = false, follow = false }: DeliveryOptions,
): Promise<number> {
  if (await preview(context, settings, endpoints.sendEvents, parts)) return 0
  const call = createCaller(context, settings)
  const { body: _, ...reading } = parts
  const follower = follow ? await openFollower(context, call, reading) : undefined
  try {
    const response = await call(endpoints.sendEvents, parts)
    const events = await readReceipt(context, response, !follow)
    if (follower) return await follower.follow({ hasHistory: false, sent: events, ids })
    await printReceipt(context, events, ids)
    return 0
  } catch (error) {
    throw error instanceof CliError && context.progress.fate ? afterAcceptance(error) : error
  } finally {
    follower?.close()
  }
}

/** A failure that came after the events were accepted must not look like a reason to send them again. */
function afterAcceptance(error: CliError): CliError {
  const known = { sent: 'yes', safeToRetry: false } as const
  if (error.kind === 'file')
    return error.with({ ...known, consequence: `${accepted}, only the output failed` })
  const way = `${accepted}: 'parley events follow' goes on from here`
  const { consequence = way } = error.details
  const isMisleading = ['not-sent', 'unknown', 'rate-limited', 'service'].includes(error.kind)
  if (!isMisleading) return error.with({ ...known, consequence })
  const { rawBody: __, retryAfter: ___, ...details } = error.details
  return new CliError('response', `the session could not be followed: ${error.message}`, {
    ...details,
    ...known,
    consequence: way,
  })
}

/** Reads the receipt, and with `--raw` prints it as it is. Any 2xx counts, also one that says nothing. */
async function readReceipt(
  { flags, output, note, progress }: Context,
  response: HttpResponse,
  isPrinted: boolean,
): Promise<SessionEvent[]> {
  const incomplete = (why: string) =>
    new CliError('response', `the event was accepted (${response.status}), but its receipt ${why}`, {
      sent: 'yes',
      consequence: 'do not send it again',
    })
  let bytes: Uint8Array
  try {
    bytes = await collect(response.body)
  } catch (error) {
    throw error instanceof CliError ? incomplete(`is incomplete: ${error.message}`) : error
  }
  const text = new TextDecoder().decode(bytes)
  const receipt = tryParse(text)
  const isRefused = isErrorEnvelope(receipt)
  if (!isRefused) progress.fate = accepted
  if (flags.raw && isPrinted) await printRaw(output, bytes)
  if (isRefused) throw failureInBody(receipt)
  if (text.trim() === '') {
    note('the service accepted the events and said no more')
    return []
  }
  if (receipt === undefined) throw incomplete('is not JSON')
  const parsed = EventsPage.safeParse(receipt)
  if (!parsed.success) throw incomplete(`has another shape: ${describeIssues(parsed.error).join('; ')}`)
  if (!parsed.data.data?.length) note('the service names no events')
  return parsed.data.data ?? []
}

function tryParse(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

async function printReceipt(context: Context, events: SessionEvent[], ids: boolean): Promise<void> {
  const { flags, output } = context
  if (ids) await printIds(context, events)
  else if (!flags.raw && events.length > 0) await printEvents(context, events)
  await output.flush()
}
