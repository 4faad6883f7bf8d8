import type { Context } from '../context.ts'
import { isSecretHeader } from '../secrets.ts'
import { deadlineOf } from '../settings/read-settings.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import { secretOriginOf } from '../settings/service-settings.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpResponse } from '../wire/exchange.ts'
import { type Authority, createAuthority } from './credential.ts'
import type { Draft } from './draft.ts'
import { createDrafter, type RequestParts } from './drafter.ts'
import { chooseExchange } from './exchange-choice.ts'
import { type OpenAnswer, openAnswer } from './open-answer.ts'
import { previewRequest } from './preview.ts'
import { createReaches } from './reach.ts'
import { createWaiting } from './waiting.ts'

/** `attempts` is how many there were, the last one included. */
type ReadableAnswer = HttpResponse & { attempts: number }

/** Sends the requests of a run. Many calls may be under way at once: each failure says how far its own call got. */
export interface Caller {
  /** With `--dry-run` or `--curl` prints a request. Returns whether it did: then nothing is to be sent. */
  preview(endpoint: Endpoint, parts: RequestParts): Promise<boolean>
  /**
   * Sends a request, and returns what `read` makes of the answer. Throws a `CliError` that says how far the request
   * got, also where `read` fails. Nothing is sent where an address or a credential is missing or may not be used.
   */
  call<T>(endpoint: Endpoint, parts: RequestParts, read: (answer: ReadableAnswer) => Promise<T>): Promise<T>
  /** The same up to the answer's head. */
  open(endpoint: Endpoint, parts: RequestParts): Promise<OpenAnswer>
  /** What carries the requests, for one that is not to a service. */
  exchange(): Promise<Exchange>
  /** When the run has to be over: milliseconds since the epoch, 0 for no deadline. */
  readonly deadline: number
  /** Forgets the secrets that commands printed, which may have expired. Returns whether there were any. */
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
  const { exchange, open } = createOpener(context, settings, { draft, authority, deadline, isOneOfMany })

  return {
    deadline,
    exchange,
    forgetSecrets: authority.forget,
    async preview(endpoint, parts) {
      const { dryRun, curl } = context.flags
      if (!dryRun && !curl) return false
      await previewRequest(context, settings, { draft: await draft(endpoint, parts), isOneOfMany })
      return true
    },
    open,
    async call(endpoint, parts, read) {
      const answer = await open(endpoint, parts)
      try {
        const value = await read(answer)
        answer.finish()
        return value
      } catch (error) {
        throw answer.complete(error)
      }
    },
  }
}

/** Where a request's secret comes from, in words; `undefined` if it has none. */
function secretOrigin(
  { endpoint, credential, headers }: Draft,
  settings: ResolvedSettings,
): string | undefined {
  if (credential) return secretOriginOf(settings, endpoint.service)?.name
  return Object.entries(headers).some(([name, value]) => isSecretHeader(name, value)) ? '--header' : undefined
}

interface OpenerParts {
  draft: ReturnType<typeof createDrafter>
  authority: Authority
  deadline: number
  isOneOfMany: boolean
}

function createOpener(
  context: Context,
  settings: ResolvedSettings,
  { draft, authority, deadline, isOneOfMany }: OpenerParts,
): Pick<Caller, 'exchange' | 'open'> {
  const { retries } = settings.values
  const { retryUnknown = false } = context.flags
  const policy = { retries, retryUnknown, leavesRefusals: isOneOfMany, deadline }
  const startReach = createReaches(context)
  // Many calls have a progress line of their own.
  const showWaiting = isOneOfMany ? <T>(work: Promise<T>) => work : createWaiting(context)
  let opened: Promise<Exchange> | undefined

  function exchange(): Promise<Exchange> {
    // Whoever makes many calls ends them all at once.
    opened ??= chooseExchange(context, settings, {
      deadline: isOneOfMany ? 0 : deadline,
      keepsConnections: isOneOfMany,
    })
    return opened
  }

  async function open(endpoint: Endpoint, parts: RequestParts): Promise<OpenAnswer> {
    const { facts } = context
    // Of many calls that name different models none is the run's.
    facts.model = isOneOfMany ? undefined : parts.params.model
    facts.session = parts.params.session
    const whole = await draft(endpoint, parts)
    const request = await authority.authorize(whole)
    const sending = {
      exchange: await exchange(),
      policy: { ...policy, repeat: endpoint.repeat },
      reach: startReach(endpoint),
      secretOrigin: secretOrigin(whole, settings),
      showWaiting,
    }
    if (parts.meanwhile) setImmediate(parts.meanwhile)
    return openAnswer(context, { endpoint, request }, sending)
  }

  return { exchange, open }
}
