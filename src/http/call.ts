import type { Context } from '../context.ts'
import type { Deadline } from '../deadline.ts'
import { CliError } from '../errors.ts'
import { createSpinner } from '../io/spinner.ts'
import type { ResolvedSettings } from '../settings/resolve.ts'
import type { Endpoint } from '../wire/endpoints.ts'
import type { Exchange, HttpResponse } from '../wire/exchange.ts'
import { joinTexts, type TrackedCall } from '../work-tracker.ts'
import { createCredentialProvider, refusePlainHttp } from './credentials.ts'
import { decompressBody } from './decompress.ts'
import {
  buildRequest,
  describeSettingFix,
  isRedirectOrPage,
  type PreparedRequest,
  parseHeaders,
  type RequestParts,
} from './request.ts'
import { type RetryAndRequestId, readErrorResponse, readRetryAndRequestId } from './response.ts'
import {
  decideRetry,
  getDeliveryState,
  getRetryAdvice,
  type RetryPolicy,
  type RetryRules,
  retry,
} from './retry.ts'
import { chooseTransport } from './transport.ts'

export interface ReadableResponse extends HttpResponse {
  /**
   * Records that the service accepted the request. A later failure does not change this. If a signal ends the
   * run later, parley prints `message`.
   */
  accept(message?: string): void
  /**
   * Ends the call with a failure, for example because parley could not read the response or write its data.
   * Returns the failure with the details of the call.
   */
  fail<E>(error: E): E | CliError
}

export type ServiceCaller = ReturnType<typeof createServiceCaller>

/**
 * With `isBatch`, connections stay open and no request is retried, because the batch retries its lines
 * itself.
 */
export function createServiceCaller(context: Context, settings: ResolvedSettings, isBatch = false) {
  const { host, flags, reportData, tracker } = context
  const credentials = createCredentialProvider(context, settings)
  const retries = isBatch ? 0 : settings.values.retries
  const { dryRun, curl, retryUnknown = false } = flags
  const spinner = createSpinner(context)

  let transport: Promise<Exchange> | undefined
  const openTransport = () => {
    transport ??= chooseTransport(context, settings, isBatch)
    return transport
  }

  const headers = parseHeaders(settings.headers, host)
  const build = (endpoint: Endpoint, parts: RequestParts): PreparedRequest =>
    buildRequest(endpoint, parts, settings.values, headers)

  async function send<T>(
    endpoint: Endpoint,
    parts: RequestParts,
    read: (response: ReadableResponse) => Promise<T>,
  ): Promise<T> {
    // The requests of a batch may have different models, so the report of a batch has no model. If an earlier
    // answer of the run named its model, the report keeps that model.
    reportData.model ??= isBatch ? undefined : parts.params.model
    reportData.session = parts.params.session
    const request = build(endpoint, parts)
    const first = await credentials.sign(request)
    let signed = first
    const exchange = await openTransport()
    if (parts.meanwhile) setImmediate(parts.meanwhile)
    parts.requireLock?.()
    const { inspectCommand, rerunHint } = parts
    const call = tracker.beginCall({ inspectCommand, rerunHint, ...endpoint }, isBatch)
    const explain = <E>(failure: E): E | CliError => {
      if (!(failure instanceof CliError)) return failure
      // A proxy may answer with a login page and status 200. So a web page does not prove that the service
      // received the request.
      if (call.state() === 'answered' && isRedirectOrPage(failure)) call.reach('sent')
      const outcome = call.getOutcome()
      const { retry, consequence } = failure.details
      return failure.with({
        delivery: call.state(),
        // In a batch, `mayDuplicate` shows whether a repeated line may be billed twice. A batch prints no
        // responses, so `response` would only fill the memory.
        ...(isBatch ? { response: undefined, mayDuplicate: outcome.mayDuplicate } : {}),
        sent: call.isCounted ? outcome.sent : undefined,
        retry: retry ?? getRetryAdvice(failure, outcome),
        // If the failure already has a consequence, that text is more exact than the text for the delivery
        // state.
        consequence:
          consequence ??
          joinTexts([outcome.failed, describeSettingFix(failure, request, parts.params, settings)], '\n'),
      })
    }
    const { deadline = context.deadline, isSingle, requireLock } = parts
    const { repeat, isRepeatedIfCut } = endpoint
    const policy = { repeat, isRepeatedIfCut, retries: isSingle ? 0 : retries, retryUnknown }
    const renewSecret = () => signed.secret === first.secret && credentials.renew(first.secret)
    const rules = createCallRules(context, call, policy, { deadline, requireLock, renewSecret })
    const hasSpinner = !isSingle && !parts.hasOutput && !isBatch
    const attempt = async (attempts: number): Promise<T> => {
      if (attempts > 1) signed = await credentials.sign(request)
      const { passed } = deadline
      if (passed) {
        const isUserDeadline = passed.limitText === undefined || undefined
        throw new CliError('not-sent', passed.limitText ?? 'the deadline passed', {
          deadline: isUserDeadline,
        })
      }
      if (reportData.attempts++ === 0) reportData.firstRequestMs = host.timers.now()
      parts.onAttempt?.(call.state)
      call.beginAttempt()
      // A batch cancels its requests itself after the deadline, so a request of a batch has no deadline.
      const limited = isBatch ? signed.request : { ...signed.request, deadline }
      const sent = await exchange(limited, () => call.reach('sent'))
      const response = decompressBody(sent)
      const head = readRetryAndRequestId(response.headers, host.timers.wallTime())
      const { status } = response
      const addFacts = <E>(failure: E): E | CliError =>
        failure instanceof CliError ? addResponseDetails(failure, head, status) : failure
      if (status >= 300) throw addFacts(await readErrorResponse(response, endpoint, head, host.timers))
      call.reach('answered')
      if (signed.secret) signed.secret.hasWorked = true
      const answer: ReadableResponse = {
        accept: call.confirm,
        fail(error) {
          const failure = explain(addFacts(error))
          call.end()
          return failure
        },
        ...response,
        close() {
          response.close()
          call.end()
        },
      }
      reportData.requestId = head.requestId
      // All calls share one spinner. The first answer removes it, because output follows.
      if (hasSpinner) spinner.stop()
      try {
        return await read(answer)
      } catch (error) {
        throw addFacts(error)
      }
    }
    const sending = retry(deadline, rules, attempt)
    if (hasSpinner) spinner.show(rules.describeWait)
    try {
      return await sending
    } catch (error) {
      // `explain` may change the state of the call, so the call ends after it.
      const failure = explain(error)
      call.end()
      throw failure
    } finally {
      if (hasSpinner) spinner.stop()
    }
  }

  return {
    retries,
    open: (endpoint: Endpoint, parts: RequestParts) => send(endpoint, parts, async (response) => response),
    /**
     * Sends a request and returns the result of `read`. Throws a `CliError` with the delivery state, also
     * if `read` fails. Sends nothing if the address or the secret is missing, or the secret does not belong
     * to the address.
     */
    call: <T>(
      endpoint: Endpoint,
      parts: RequestParts,
      read: (response: ReadableResponse) => Promise<T>,
    ): Promise<T> =>
      send(endpoint, parts, async (response) => {
        const value = await read(response)
        response.accept()
        response.close()
        return value
      }),
    async preview(endpoint: Endpoint, parts: RequestParts) {
      if (!dryRun && !curl) return false
      if (curl) refusePlainHttp(settings, endpoint.service)
      const { previewRequest } = await import('./preview.ts')
      await previewRequest(context, settings, { request: build(endpoint, parts), isBatch })
      return true
    },
  }
}

function createCallRules(
  { host: { timers }, messages }: Context,
  call: TrackedCall,
  policy: RetryPolicy & Pick<Endpoint, 'isRepeatedIfCut'>,
  limits: { deadline: Deadline; requireLock: RequestParts['requireLock']; renewSecret(): boolean },
): RetryRules & { describeWait(): string } {
  const { deadline, requireLock, renewSecret } = limits
  const since = timers.now()
  let nextAttemptAt = since
  /**
   * Failure of the attempt that reached the latest delivery state. `undefined` if no attempt sent anything.
   */
  let furthest: CliError | undefined
  let last: CliError | undefined
  let wasUnavailable = false

  function recordDelivery(failure: CliError): void {
    const { status = 0 } = failure.details
    const before = call.state()
    call.reach(getDeliveryState(failure))
    // A gateway may send a 503 although the service accepted the request. The service may then refuse the
    // repetition as a duplicate. So a 400 or 409 does not prove that nothing was accepted.
    if (wasUnavailable && [400, 409].includes(status) && policy.repeat === 'unaccepted') call.reach('failed')
    wasUnavailable ||= status === 503
    if (failure.kind !== 'not-sent' && (!furthest || call.state() !== before)) furthest = failure
  }

  function decideWait(failure: CliError, attempt: number): number | CliError {
    const { status = 0 } = failure.details
    if (deadline.hasPassed) return failure
    if (status === 401 && renewSecret()) return 0
    // The data of the answer may be printed already, so parley does not repeat the request.
    if (status >= 200 && status < 300 && !policy.isRepeatedIfCut) return failure
    const [now, random] = [timers.now(), timers.random()]
    return decideRetry(policy, failure, { attempt, now, deadlineMs: deadline.atMs, random })
  }

  return {
    decide(failure, attempts) {
      recordDelivery(failure)
      const wait = decideWait(failure, attempts)
      const ended = wait instanceof CliError ? wait : failure
      // The failure must not report "nothing was sent" if an earlier attempt sent the request.
      last = ended.kind === 'not-sent' && furthest ? joinEarlier(ended, furthest) : ended
      if (wait instanceof CliError) return last
      if (wait > 0) messages.note(describeRetry(last, wait))
      nextAttemptAt = timers.now() + wait
      return wait
    },
    describeWait() {
      const now = timers.now()
      return now < nextAttemptAt
        ? `trying again in ${Math.ceil((nextAttemptAt - now) / 1000)} s`
        : `waiting for the answer · ${Math.floor((now - since) / 1000)} s`
    },
    requireNext(failure) {
      const earlier = last ?? failure
      if (deadline.hasPassed) throw earlier.with({ deadline: true })
      try {
        requireLock?.()
      } catch (error) {
        const isUnanswered = error instanceof CliError && call.getOutcome().sent === 'unknown'
        throw isUnanswered ? joinEarlier(error, earlier) : error
      }
    },
  }
}

/** The result has the details of the earlier failure, because only the earlier attempt sent the request. */
const joinEarlier = (failure: CliError, earlier: CliError): CliError =>
  earlier.with({ deadline: failure.details.deadline }, `${failure.message}; before that, ${earlier.message}`)

function addResponseDetails(failure: CliError, head: RetryAndRequestId, status: number): CliError {
  const { details } = failure
  const { retryAfterSeconds = details.retryAfterSeconds, requestId = details.requestId } = head
  return failure.with({ retryAfterSeconds, requestId, status })
}

export const describeRetry = ({ message }: CliError, waitMs: number): string =>
  `${message}; trying again in ${(waitMs / 1000).toFixed(1)} s`
