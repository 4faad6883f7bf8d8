import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import { createRawPrinter } from '../../terminal/raw-printer.ts'
import { endpoints } from '../../wire/endpoints.ts'
import { EventsPage, type SessionEvent } from '../../wire/events.ts'
import { collect, type HttpResponse } from '../../wire/exchange.ts'
import { describeIssues } from '../../wire/json.ts'
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
  const response = await call(endpoints.sendEvents, parts)
  context.progress.fate = accepted
  try {
    const events = await readReceipt(context, response, !follow)
    if (!follower) {
      await printReceipt(context, events, ids)
      return 0
    }
    return await follower.follow({ hasHistory: false, after: events, ids })
  } catch (error) {
    if (!(error instanceof CliError) || error.kind !== 'file') throw error
    throw error.with({ sent: 'yes', consequence: `${accepted}, only the output failed` })
  }
}

/** Reads the receipt, and with `--raw` prints it as it is. Any 2xx counts, also one that says nothing. */
async function readReceipt(
  { flags, output, note }: Context,
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
  if (flags.raw && isPrinted) {
    const raw = createRawPrinter(output)
    raw.add(bytes)
    await raw.write()
  }
  const text = new TextDecoder().decode(bytes)
  if (text.trim() === '') {
    note('the service accepted the events and said no more')
    return []
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw incomplete('is not JSON')
  }
  const parsed = EventsPage.safeParse(value)
  if (!parsed.success) throw incomplete(`has another shape: ${describeIssues(parsed.error).join('; ')}`)
  if (!parsed.data.data?.length) note('the service names no events')
  return parsed.data.data ?? []
}

async function printReceipt(context: Context, events: SessionEvent[], ids: boolean): Promise<void> {
  const { flags, output } = context
  if (ids) await printIds(context, events)
  else if (!flags.raw && events.length > 0) await printEvents(context, events)
  await output.flush()
}
