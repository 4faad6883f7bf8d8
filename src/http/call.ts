import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import type { Call } from '../fate.ts'
import { printRaw } from '../io/raw-printer.ts'
import { showSpinner } from '../io/spinner.ts'
import { isSecretHeader } from '../secrets.ts'
import { pathDoubt } from '../settings/doubts.ts'
import { deadlineOf } from '../settings/read-settings.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { addressOf, mendSecret } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { type Carrier, chooseCarrier } from './carrier.ts'
import { createCredentials } from './credentials.ts'
import { decodeBody } from './decode.ts'
import { createRequestBuilder, type Request, type RequestParts } from './request.ts'
import { type ResponseHead, readErrorResponse, readHead } from './response.ts'
import { decideRetry, type FailedAttempt, fateOf, type RetryPolicy, refusesSecret, retryOf } from './retry.ts'

/** A response of status 2xx whose body is still to be read. */
export interface ReadableResponse extends HttpResponse {
  /** How many attempts there were, the last one included. */
  attempts: number
  /** The response proves that the request was carried out, whatever fails after this. */
  accept(): void
}

/** One that is read piece by piece. */
interface StreamedResponse extends ReadableResponse {
  /** The response was read. */
  finish(): void
  /** Adds what is known of the call to a failure of reading the response, or of writing it anywhere. */
  complete(error: unknown): unknown
}

/** Makes the calls of a run. Many may be under way at once: each failure says how far its own call got. */
export interface Caller {
  /** With `--dry-run` or `--curl` prints a request. Returns whether it did: then nothing is to be sent. */
  preview(endpoint: Endpoint, parts: RequestParts): Promise<boolean>
  /**
   * Sends a request, and returns what `read` makes of the response. Throws a `CliError` that says how far the request
   * got, also if `read` fails. Nothing is sent if an address or a credential is missing or may not be used.
   */
  call<T>(
    endpoint: Endpoint,
    parts: RequestParts,
    read: (response: ReadableResponse) => Promise<T>,
  ): Promise<T>
  /** The same up to the response's head. */
  open(endpoint: Endpoint, parts: RequestParts): Promise<StreamedResponse>
  /** Builds a request with its secret, and sends nothing. Throws as `call` does before anything is sent. */
  prepare(endpoint: Endpoint, parts: RequestParts): Promise<HttpRequest>
  /** When the run has to be over, by the forward clock, Infinity for no deadline. */
  readonly deadline: number
  /** Forgets the secrets that commands printed, which may have expired. Returns whether there were any. */
  forgetSecrets(): boolean
}

interface CallerOptions {
  /** Many calls follow each other: connections are kept, and the caller decides which one is made again, and when. */
  isOneOfMany?: boolean
  /** Seconds: how long a service may be silent, in place of the setting. */
  timeout?: number
  /** The command that continues an interrupted run, printed after the outcome of its calls. */
  wayOn?: () => string | undefined
}

export function createCaller(
  context: Context,
  settings: ResolvedSettings,
  { isOneOfMany = false, timeout = settings.values.timeout, wayOn }: CallerOptions = {},
): Caller {
  const { flags, summary, calls } = context
  const deadline = deadlineOf(context, settings)
  const credentials = createCredentials(context, settings)
  const build = createRequestBuilder(context, settings)
  const retries = isOneOfMany ? 0 : settings.values.retries
  const { dryRun, curl, retryUnknown = false } = flags
  // Many calls have a progress line of their own.
  const showWaiting = isOneOfMany ? <T>(work: Promise<T>) => work : createWaiting(context)
  let carrying: Promise<Carrier> | undefined
  /** The session whose id was kept last: each list that a run reads is a call. */
  let kept: string | undefined

  function carrier(): Promise<Carrier> {
    // A batch ends all its calls itself.
    carrying ??= chooseCarrier(context, settings, {
      timeout,
      deadline: isOneOfMany ? Infinity : deadline,
      keepsConnections: isOneOfMany,
    })
    return carrying
  }

  async function open(endpoint: Endpoint, parts: RequestParts): Promise<StreamedResponse> {
    // Of many calls that name different models none is the run's.
    summary.model = isOneOfMany ? undefined : parts.params.model
    summary.session = parts.params.session
    const request = await build(endpoint, parts)
    const signed = await credentials.addTo(request, parts.once)
    const wayToMend: WayToMend = ({ details: { status } }) => {
      if (refusesSecret(status)) return wayToMendSecret(request, settings)
      const isElsewhere = status === 404 || status === 405
      return isElsewhere ? wayToMendAddress(signed.url, settings, endpoint) : undefined
    }
    const { exchange, checkWay } = await carrier()
    checkWay?.(new URL(signed.url))
    if (parts.meanwhile) setImmediate(parts.meanwhile)
    const call = calls.begin({ ...endpoint, look: parts.look }, { isOneOfMany, wayOn })
    const policy = { repeat: endpoint.repeat, retries: parts.once ? 0 : retries, retryUnknown, deadline }
    const how = { endpoint, parts, exchange, call, policy, wayToMend }
    const sending = sendRequest(context, { ...signed, signal: parts.once }, how)
    const response = await (parts.isAside ? sending : showWaiting(sending)).catch(async (error: unknown) => {
      call.end()
      if (!parts.isEndured) await printFailureBody(context, error)
      throw error
    })
    summary.requestId = response.head.requestId
    return {
      ...response,
      accept: () => call.reach('done'),
      close() {
        response.close()
        call.end()
      },
      finish() {
        call.reach('done')
        call.end()
      },
      complete(error) {
        call.end()
        // One that has attempts is another call's.
        if (!(error instanceof CliError) || error.details.attempts !== undefined) return error
        return explain(afterResponse(error, response), call, wayToMend)
      },
    }
  }

  return {
    deadline,
    prepare: async (endpoint, parts) => credentials.addTo(await build(endpoint, parts)),
    open,
    forgetSecrets: credentials.forget,
    async preview(endpoint, parts) {
      if (!dryRun && !curl) return false
      const { previewRequest } = await import('./preview.ts')
      await previewRequest(context, settings, { request: await build(endpoint, parts), isOneOfMany })
      return true
    },
    async call(endpoint, parts, read) {
      const response = await open(endpoint, parts)
      try {
        const value = await read(response)
        response.finish()
        const { session } = parts.params
        if (session !== undefined && session !== kept) {
          kept = session
          await (await carrier()).keepSession?.(session)
        }
        return value
      } catch (error) {
        throw response.complete(error)
      }
    },
  }
}

type WayToMend = (failure: CliError) => string | undefined

/** What the attempts of a call share. */
interface AttemptParts {
  endpoint: Endpoint
  parts: RequestParts
  exchange: Exchange
  call: Call
  policy: RetryPolicy
  /** Names the setting that made the request wrong, and how to change it. */
  wayToMend: WayToMend
}

/** A response of status 2xx. */
interface Response extends HttpResponse {
  head: ResponseHead
  /** How many attempts there were, this one included. */
  attempts: number
}

/**
 * Sends a request, and again if that is safe, until a response has a status of 2xx. Every attempt sends the same bytes.
 * Throws a `CliError` that says how far the call got.
 */
async function sendRequest(context: Context, request: HttpRequest, sending: AttemptParts): Promise<Response> {
  const { timers, summary, note } = context
  const { parts, call, policy, wayToMend } = sending
  /** Of the attempt that got furthest. */
  let furthest: CliError | undefined
  for (let attempt = 1; ; attempt++) {
    context.requireRight?.()
    summary.attempts++
    const result = await tryOnce(context, request, sending)
    if ('status' in result) return { ...result, attempts: attempt }
    const { error } = result
    const before = call.fate()
    call.reach(fateOf(error))
    const failure = withEarlier(error, furthest)
    const decision = decideRetry(policy, result, { attempt, now: timers.now(), random: timers.random() })
    const end = (because?: string, deadline?: boolean) =>
      explain(
        new CliError(failure.kind, because ? `${failure.message} (${because})` : failure.message, {
          ...failure.details,
          attempts: attempt,
          deadline: failure.details.deadline ?? deadline,
        }),
        call,
        wayToMend,
      )
    if (!decision.again) throw end(decision.because, decision.deadline)
    if (error.kind !== 'not-sent' && (!furthest || call.fate() !== before)) furthest = error
    note(describeRetry(failure, decision.wait))
    await timers.wait(decision.wait)
    if (parts.isStopped?.()) throw end()
  }
}

async function tryOnce(
  { timers }: Context,
  request: HttpRequest,
  { endpoint, call, exchange }: AttemptParts,
): Promise<Omit<Response, 'attempts'> | FailedAttempt> {
  call.attempt()
  let response: HttpResponse
  try {
    response = decodeBody(await exchange(request, () => call.reach('sent')))
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    return { error }
  }
  const head = await readHead(response.headers, timers.date())
  if (response.status >= 300) return readErrorResponse(response, endpoint, head)
  call.reach('answered')
  return { ...response, head }
}

/** If the last attempt sent nothing but one before it did, that one is the call's failure: that nothing was sent is not true. */
function withEarlier(failure: CliError, furthest: CliError | undefined): CliError {
  if (failure.kind !== 'not-sent' || !furthest) return failure
  const { deadline } = failure.details
  const message = `${failure.message}; before that, ${furthest.message}`
  return new CliError(furthest.kind, message, { ...furthest.details, deadline })
}

/** A failure of reading a response, or of writing it anywhere, with what is known of the response. */
const afterResponse = (
  { kind, message, details }: CliError,
  { status, attempts, head }: Response,
): CliError =>
  new CliError(kind, details.isInBody ? `the service answered ${status} with an error` : message, {
    ...details,
    retryAfter: head.retryAfter ?? details.retryAfter,
    requestId: head.requestId ?? details.requestId,
    status,
    attempts,
  })

/** Adds what the fate of a call means to its failure. */
function explain(failure: CliError, call: Call, wayToMend: WayToMend): CliError {
  const meaning = call.meaning()
  const { retry, consequence } = failure.details
  return failure.with({
    fate: call.fate(),
    sent: meaning.sent,
    retry: retry ?? retryOf(failure, meaning),
    // The failure itself may know more.
    consequence: consequence ?? wayToMend(failure) ?? meaning.failed,
  })
}

/** Prints with `--raw` what the service sent with a failure that ends the run. */
export async function printFailureBody(
  { flags, output }: Pick<Context, 'flags' | 'output'>,
  error: unknown,
): Promise<void> {
  const rawBody = error instanceof CliError ? error.details.rawBody : undefined
  if (flags.raw && rawBody) await printRaw(output, rawBody)
}

/** `wait` in milliseconds. */
export const describeRetry = ({ message }: CliError, wait: number): string =>
  `${message}; trying again in ${(wait / 1000).toFixed(1)} s`

/** What replaces a request's secret; `undefined` if it has none. */
function wayToMendSecret(
  { endpoint, credential, headers }: Request,
  settings: ResolvedSettings,
): string | undefined {
  if (credential) return mendSecret(settings, endpoint.service)
  const isGiven = Object.entries(headers).some(([name, value]) => isSecretHeader(name, value))
  return isGiven ? 'its secret came from --header' : undefined
}

/** The address that was asked for, and the settings that made it. */
function wayToMendAddress(url: string, { values, origins }: ResolvedSettings, endpoint: Endpoint): string {
  const name = addressOf(endpoint.service)
  const address = `${name} (${origins[name]?.name})`
  const doubt = pathDoubt(name, values[name] ?? '')
  const { source, name: place = '' } = origins.family ?? {}
  const from = source === 'default' ? "the default, which may not be this gateway's" : place
  const family = endpoint.path.includes('{family}') ? ` and family '${values.family}' (${from})` : ''
  return `asked for ${url}; ${doubt ? `${doubt} (${origins[name]?.name})` : `it is made of ${address}${family}`}`
}

/**
 * Makes what shows a spinner on a terminal while `work` is not done. With several at once, it stops when the first is
 * done: from then on there is output, which a spinner would cover.
 */
function createWaiting(context: Context): <T>(work: Promise<T>) => Promise<T> {
  let count = 0
  let stop = () => false
  return async (work) => {
    if (count++ === 0) stop = showSpinner(context, 'waiting for the answer')
    try {
      return await work
    } finally {
      count--
      stop()
    }
  }
}
