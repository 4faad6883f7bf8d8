import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { printRaw } from '../io/raw-printer.ts'
import { showSpinner } from '../io/spinner.ts'
import { isSecretHeader } from '../secrets.ts'
import { pathDoubt } from '../settings/doubts.ts'
import { deadlineOf } from '../settings/read-settings.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { addressOf, mendSecret } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { HttpRequest, HttpResponse } from '../wire/exchange.ts'
import { completeFailure, sendRequest } from './attempts.ts'
import { type Carrier, chooseCarrier } from './carrier.ts'
import { createCredentials } from './credentials.ts'
import { createRequestBuilder, type Request, type RequestParts } from './request.ts'
import { refusesSecret } from './retry.ts'

/** A response of status 2xx whose body is still to be read. */
export interface ReadableResponse extends HttpResponse {
  /** How many attempts there were, the last one included. */
  attempts: number
  /** The response proves that the request was carried out, whatever fails after this. */
  accept(): void
}

/** One that is read piece by piece. */
interface OpenResponse extends ReadableResponse {
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
  open(endpoint: Endpoint, parts: RequestParts): Promise<OpenResponse>
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
  /** What is said if the run is interrupted, after what became of its calls: how to go on. */
  wayOn?: () => string | undefined
}

export function createCaller(
  context: Context,
  settings: ResolvedSettings,
  { isOneOfMany = false, timeout = settings.values.timeout, wayOn }: CallerOptions = {},
): Caller {
  const { flags, summary, calls, timers, note } = context
  const deadline = deadlineOf(context, settings)
  const credentials = createCredentials(context, settings)
  const build = createRequestBuilder(context, settings)
  const retries = isOneOfMany ? 0 : settings.values.retries
  const { dryRun, curl, retryUnknown = false } = flags
  const policy = { retries, retryUnknown, deadline }
  // Many calls have a progress line of their own.
  const showWaiting = isOneOfMany ? <T>(work: Promise<T>) => work : createWaiting(context)
  let carrying: Promise<Carrier> | undefined

  function carrier(): Promise<Carrier> {
    // Whoever makes many calls ends them all at once.
    carrying ??= chooseCarrier(context, settings, {
      timeout,
      deadline: isOneOfMany ? Infinity : deadline,
      keepsConnections: isOneOfMany,
    })
    return carrying
  }

  async function open(endpoint: Endpoint, parts: RequestParts): Promise<OpenResponse> {
    // Of many calls that name different models none is the run's.
    summary.model = isOneOfMany ? undefined : parts.params.model
    summary.session = parts.params.session
    const request = await build(endpoint, parts)
    const signed = await credentials.addTo(request, parts.once)
    const wayToMend = ({ details: { status } }: CliError) => {
      if (refusesSecret(status)) return wayToMendSecret(request, settings)
      const isElsewhere = status === 404 || status === 405
      return isElsewhere ? wayToMendAddress(signed.url, settings, endpoint) : undefined
    }
    const { exchange: carry, checkWay } = await carrier()
    checkWay?.(new URL(signed.url))
    if (parts.meanwhile) setImmediate(parts.meanwhile)
    const call = calls.begin({ ...endpoint, look: parts.look }, { isOneOfMany, wayOn })
    const sending = sendRequest(signed, {
      endpoint,
      call,
      exchange(request, onSent) {
        summary.attempts++
        return carry({ ...request, signal: parts.once }, onSent)
      },
      policy: parts.once ? { ...policy, retries: 0 } : policy,
      timers,
      wayToMend,
      isStopped: parts.isStopped,
      requireRight: context.requireRight,
      onRetry: (failure, wait) => note(describeRetry(failure, wait)),
    })
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
        const known = { ...response, wayToMend }
        const whole = error instanceof CliError ? completeFailure(error, call, known) : error
        call.end()
        return whole
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
        return value
      } catch (error) {
        throw response.complete(error)
      }
    },
  }
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
