import { type Answer, completeFailure, send } from '../client/send.ts'
import type { Context } from '../context.ts'
import { CliError } from '../errors.ts'
import { printRaw } from '../io/raw-printer.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpResponse } from '../wire/exchange.ts'
import { openExchange } from './carrier.ts'
import { consequenceOf } from './consequence.ts'
import { createAuthority, secretOriginOf } from './credential.ts'
import { createDrafter, type RequestParts } from './drafter.ts'
import { previewRequest } from './preview.ts'
import { createReach } from './reach.ts'
import { deadlineOf } from './settings.ts'
import { showWaiting } from './waiting.ts'

/** An answer of status 2xx that is read bit by bit. */
interface OpenAnswer extends HttpResponse {
  /** Adds what is known of the call to a failure of reading the answer, or of putting it anywhere. */
  complete(error: unknown): unknown
}

/** Sends the requests of a run. Each call keeps its own account of how far it got, so that many may go on at once. */
export interface Caller {
  /**
   * Prints a request where `--dry-run` or `--curl` asks for that. Returns whether they do, so that nothing is to be
   * sent.
   */
  preview(endpoint: Endpoint, parts: RequestParts): Promise<boolean>
  /**
   * Sends a request, and returns what `read` makes of the answer. Throws a `CliError` that says how far the request
   * got, also for what goes wrong in `read`; before anything is sent where an address or a credential is missing or may
   * not be used.
   */
  call<T>(endpoint: Endpoint, parts: RequestParts, read: (answer: HttpResponse) => Promise<T>): Promise<T>
  /** The same up to the answer's head. */
  open(endpoint: Endpoint, parts: RequestParts): Promise<OpenAnswer>
  /** The end of everything: milliseconds since the epoch, 0 for none. */
  readonly deadline: number
  /** Forgets the secrets that commands gave, which may have expired. Returns whether there were any. */
  forgetSecrets(): boolean
}

/**
 * `isOneOfMany`: many calls follow each other, so that connections are kept, and how long all of them wait after a
 * refusal is for whoever makes the calls to decide.
 */
export function createCaller(
  context: Context,
  settings: ResolvedSettings,
  { isOneOfMany = false }: { isOneOfMany?: boolean } = {},
): Caller {
  const deadline = deadlineOf(context, settings)
  const authority = createAuthority(context, settings)
  const draft = createDrafter(context, settings)
  let exchange: Promise<Exchange> | undefined

  async function begin(endpoint: Endpoint, parts: RequestParts) {
    const whole = await draft(endpoint, parts)
    const request = await authority.authorize(whole)
    exchange ??= openExchange(context, settings, { deadline, keepsConnections: isOneOfMany })
    if (parts.meanwhile) setImmediate(parts.meanwhile)
    return sendOnce(context, endpoint, {
      request,
      exchange: await exchange,
      policy: {
        repeat: endpoint.repeat,
        retries: settings.values.retries,
        retryUnknown: context.flags.retryUnknown ?? false,
        leavesRefusals: isOneOfMany,
        deadline,
      },
      secretOrigin: whole.credential ? secretOriginOf(settings, endpoint.service)?.name : '--header',
    })
  }

  return {
    deadline,
    forgetSecrets: authority.forget,
    async preview(endpoint, parts) {
      const { dryRun, curl } = context.flags
      if (!dryRun && !curl) return false
      await previewRequest(context, settings, await draft(endpoint, parts))
      return true
    },
    open: async (endpoint, parts) => (await begin(endpoint, parts)).answer,
    async call(endpoint, parts, read) {
      const { answer, finish } = await begin(endpoint, parts)
      try {
        const value = await read(answer)
        finish()
        return value
      } catch (error) {
        throw answer.complete(error)
      }
    },
  }
}

type Sending = Omit<Parameters<typeof send>[2], 'onSent' | 'onRetry' | 'timers'> & {
  request: Parameters<typeof send>[0]
  secretOrigin: string | undefined
}

async function sendOnce(
  context: Context,
  endpoint: Endpoint,
  { request, secretOrigin, ...options }: Sending,
): Promise<{ answer: OpenAnswer; finish(): void }> {
  const reach = createReach(endpoint)
  // What only reads may end at any time.
  if (endpoint.method !== 'GET') context.whenInterrupted(reach.describe)
  const stopWaiting = showWaiting(context)
  try {
    const answer = await send(request, endpoint, {
      ...options,
      timers: context.timers,
      onSent: reach.leave,
      onRetry(failure, wait) {
        reach.fail(failure)
        context.note(`${failure.message}; trying again in ${(wait / 1000).toFixed(1)} s`)
      },
    })
    reach.answer()
    return { answer: explaining(answer, endpoint, secretOrigin), finish: reach.finish }
  } catch (error) {
    stopWaiting()
    if (!(error instanceof CliError)) throw error
    const { rawBody } = error.details
    if (context.flags.raw && rawBody) await printRaw(context.output, rawBody)
    throw error.with(consequenceOf(error, endpoint, secretOrigin))
  } finally {
    stopWaiting()
  }
}

const explaining = (answer: Answer, endpoint: Endpoint, secretOrigin: string | undefined): OpenAnswer => ({
  ...answer,
  complete(error) {
    if (!(error instanceof CliError)) return error
    const whole = completeFailure(error, answer, endpoint)
    const isSaid = whole === error || whole.details.consequence !== undefined
    return isSaid ? whole : whole.with(consequenceOf(whole, endpoint, secretOrigin))
  },
})
