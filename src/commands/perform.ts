import { curlVariables, toCurl, toDryRun } from '../client/preview.ts'
import { type DraftParts, draftRequest, parseHeader } from '../client/request.ts'
import { completeFailure, send } from '../client/send.ts'
import type { Context, Progress } from '../context.ts'
import { CliError, usage } from '../errors.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { variableOf } from '../settings/table.ts'
import { escapeJson } from '../terminal/escape.ts'
import { printRaw } from '../terminal/raw-printer.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { consequenceOf } from './consequence.ts'
import { addressOf, authorize, secretOriginOf } from './credential.ts'
import { chooseExchange } from './exchange.ts'
import { deadlineOf } from './settings.ts'
import { showWaiting } from './waiting.ts'

/** What varies from one request of a run to the next. */
export type RequestParts = Omit<DraftParts, 'address' | 'extraHeaders'> & {
  /** Loads what reads the answer, while the service is at work. */
  meanwhile?(): void
}

/**
 * Sends a request and returns its answer. Throws a `CliError` before anything is sent where an address or a
 * credential is missing or may not be used.
 */
export type Caller = ((endpoint: Endpoint, parts: RequestParts) => Promise<HttpResponse>) & {
  /** The end of everything: milliseconds since the epoch, 0 for none. */
  readonly deadline: number
}

/** Makes what sends all of a run's requests: one exchange, and one deadline for everything. */
export function createCaller(context: Context, settings: ResolvedSettings): Caller {
  const deadline = deadlineOf(context, settings)
  let exchange: Promise<Exchange> | undefined
  // Once for all requests: a header may stand on stdin.
  let headers: Promise<Record<string, string>> | undefined

  const call = async (endpoint: Endpoint, parts: RequestParts) => {
    headers ??= readHeaders(context)
    const whole = draft(context, settings, endpoint, { ...parts, extraHeaders: await headers })
    const request = await authorize(context, settings, whole)
    const secretOrigin = whole.credential ? secretOriginOf(settings, endpoint.service)?.name : '--header'
    exchange ??= chooseExchange(context, settings, deadline)
    if (parts.meanwhile) setImmediate(parts.meanwhile)
    return exchangeOnce(context, settings, endpoint, request, {
      exchange: await exchange,
      deadline,
      secretOrigin,
    })
  }
  return Object.assign(call, { deadline })
}

/** Does what `--dry-run` and `--curl` ask for. Returns whether they do, so that nothing is to be sent. */
export async function preview(
  context: Context,
  settings: ResolvedSettings,
  endpoint: Endpoint,
  parts: RequestParts,
): Promise<boolean> {
  const { flags, output, note } = context
  if (!flags.dryRun && !flags.curl) return false
  const extraHeaders = await readHeaders(context)
  const request = draft(context, settings, endpoint, { ...parts, extraHeaders })
  const setting = request.credential?.setting
  const { isTerminal } = output
  if (flags.curl) {
    const own = setting && settings.origins[setting]?.source !== 'environment' ? [variableOf(setting)] : []
    const variables = [...own, ...curlVariables(request)]
    if (variables.length > 0) note(`set ${variables.join(' and ')} before running it`)
    await output.write(toCurl(request, variableOf(setting ?? 'accessToken'), isTerminal))
  } else await output.write(isTerminal ? showJson(toDryRun(request)) : toDryRun(request))
  await output.flush()
  return true
}

/** A carriage return can stand between JSON's words only, and would let what follows cover them. */
const showJson = (json: string): string => escapeJson(json.replace(/\r\n?/g, '\n'))

/** Shows a command's one request, and returns nothing, or sends it and returns its answer. */
export async function perform(
  context: Context,
  settings: ResolvedSettings,
  endpoint: Endpoint,
  parts: RequestParts,
): Promise<HttpResponse | undefined> {
  if (await preview(context, settings, endpoint, parts)) return undefined
  return createCaller(context, settings)(endpoint, parts)
}

function draft(
  context: Context,
  settings: ResolvedSettings,
  endpoint: Endpoint,
  parts: Omit<DraftParts, 'address'>,
) {
  if (context.flags.retryUnknown && endpoint.repeat !== 'failed') {
    throw usage(
      '--retry-unknown is for chat and image: what it could repeat here must not be, or is tried again anyway',
    )
  }
  const address = settings.values[addressOf(endpoint.service)]
  return draftRequest(endpoint, { ...parts, address })
}

async function readHeaders({ flags, input }: Context): Promise<Record<string, string>> {
  const headers = new Map<string, [name: string, value: string]>()
  for (const line of flags.header ?? []) {
    const header = parseHeader((await input.value(line, '--header')).trimEnd())
    headers.set(header[0].toLowerCase(), header)
  }
  return Object.fromEntries(headers.values())
}

async function exchangeOnce(
  context: Context,
  { values: { retries } }: ResolvedSettings,
  endpoint: Endpoint,
  request: HttpRequest,
  {
    exchange,
    deadline,
    secretOrigin,
  }: { exchange: Exchange; deadline: number; secretOrigin: string | undefined },
): Promise<HttpResponse> {
  const { flags, progress, timers, note } = context
  // What only reads may end at any time.
  const reach = (stake: NonNullable<Progress['sent']>) => {
    if (endpoint.method !== 'GET') progress.sent = stake
  }
  reach('no')
  let furthest: Stake = 'no'
  const stopWaiting = showWaiting(context)
  try {
    const answer = await send(request, endpoint, {
      exchange,
      policy: { repeat: endpoint.repeat, retries, retryUnknown: flags.retryUnknown ?? false, deadline },
      timers,
      onRetry(failure, wait) {
        furthest = furtherOf(furthest, stakeOf(failure))
        reach(furthest)
        note(`${failure.message}; trying again in ${(wait / 1000).toFixed(1)} s`)
      },
    })
    // A status alone is no receipt.
    reach(endpoint.repeat === 'refused' ? 'unknown' : 'yes')
    return onReading(answer, () => {
      progress.explain = (failure) => {
        const whole = completeFailure(failure, answer, endpoint)
        const isSaid = whole === failure || whole.details.consequence !== undefined
        return isSaid ? whole : whole.with(consequenceOf(whole, endpoint, secretOrigin))
      }
    })
  } catch (error) {
    stopWaiting()
    if (!(error instanceof CliError)) throw error
    const { rawBody } = error.details
    if (flags.raw && rawBody) await printRaw(context.output, rawBody)
    throw error.with(consequenceOf(error, endpoint, secretOrigin))
  } finally {
    stopWaiting()
  }
}

/** Has `act` called when an answer's body begins to be read, which of several may be later than another's. */
const onReading = (answer: HttpResponse, act: () => void): HttpResponse => ({
  ...answer,
  body: {
    [Symbol.asyncIterator]() {
      act()
      return answer.body[Symbol.asyncIterator]()
    },
  },
})

/** What attempts that failed may have done, from the least: a later one does not undo an earlier one. */
const stakes = ['no', 'refused', 'failed', 'unknown'] as const
type Stake = (typeof stakes)[number]

const furtherOf = (one: Stake, other: Stake): Stake =>
  stakes.indexOf(one) > stakes.indexOf(other) ? one : other

function stakeOf({ kind, details: { sent = 'no' } }: CliError): Stake {
  if (sent !== 'yes') return sent
  return kind === 'rate-limited' ? 'refused' : 'failed'
}
