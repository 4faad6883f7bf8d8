/**
 * States of a request, in the order of risk if the request is sent again:
 *
 * - `not-sent`: no byte was sent.
 * - `refused`: the answer proves that the request was not carried out. It is a 3xx, a 4xx other than 408 and
 *   425, or a 503 with `Retry-After`.
 * - `failed`: the answer is a failure, but the request may have been carried out, for example behind a
 *   gateway.
 * - `sent`: bytes were sent, and no answer of the service arrived. A web page may come from another server.
 * - `answered`: a 2xx began. The request may have been carried out even if the body is an error.
 * - `done`: parley read the response. After sending events, the response was empty or a receipt: a list of
 *   the accepted events.
 */
export const deliveryStates = ['not-sent', 'refused', 'failed', 'sent', 'answered', 'done'] as const

export type DeliveryState = (typeof deliveryStates)[number]

export const getLaterDeliveryState = (before: DeliveryState, attempt: DeliveryState): DeliveryState =>
  deliveryStates.indexOf(attempt) > deliveryStates.indexOf(before) ? attempt : before

export const isCertainlyUnaccepted = (state: DeliveryState | undefined): boolean =>
  state === 'not-sent' || state === 'refused'

/**
 * Failures after which parley may repeat a request. `unaccepted`: only if the failure proves that the service
 * did not accept the request. `failed`: also after a 5xx. `always`: also if the answer is missing.
 */
export type RepeatRule = 'unaccepted' | 'failed' | 'always'

export interface DeliveryRules {
  repeat: RepeatRule
  /**
   * If true, only a receipt (a response that lists the accepted events) proves that the request was carried
   * out. Any other response may come from a gateway.
   */
  isProvedByReceipt?: boolean
  missingReceiptText?: string
  inspectCommand?: string | undefined
  /** Replaces the advice to check before sending again. */
  rerunHint?: string | undefined
}

/** Value of the field `sent` in errors and reports. `unknown` stands for the delivery state `sent`. */
export type SentStatus = 'no' | 'unknown' | 'yes'

/**
 * Value of the field `retry` in errors and reports, for scripts that run the same command again.
 * `look-first`: only after a check, because the work may be done already and must not be done twice.
 */
export type RetryAdvice = 'never' | 'later' | 'look-first'

export interface DeliveryOutcome {
  sent: SentStatus
  isRepeatable: boolean
  /**
   * True if the service may have carried out the request. A repetition may then be carried out or billed
   * again.
   */
  mayDuplicate: boolean
  interrupted?: string
  failed?: string
}

const createCheckAdvice = (inspectCommand: string | undefined) =>
  `check${inspectCommand === undefined ? '' : ` with '${inspectCommand}'`} before sending again`

const unknownOutcome = 'the request was sent, but it is not known whether it was carried out'

export function describeDelivery(state: DeliveryState, rules: DeliveryRules): DeliveryOutcome {
  const { repeat, isProvedByReceipt = false, inspectCommand, rerunHint } = rules
  const advice = rerunHint ?? createCheckAdvice(inspectCommand)
  const isOnce = repeat === 'unaccepted'
  // Repeating a request that only reads does no harm, so such a request needs no warning.
  const uncertain = isProvedByReceipt
    ? `${rules.missingReceiptText ?? 'the event may have been accepted'}: ${advice}`
    : repeat === 'always'
      ? undefined
      : unknownOutcome
  const interrupted = isProvedByReceipt ? uncertain : 'the request was sent; it may have been carried out'
  const outcomes: Record<DeliveryState, Omit<DeliveryOutcome, 'mayDuplicate'>> = {
    'not-sent': { sent: 'no', isRepeatable: true },
    refused: { sent: 'yes', isRepeatable: true, interrupted: 'nothing was accepted' },
    failed: {
      sent: 'yes',
      isRepeatable: !isOnce,
      interrupted: isProvedByReceipt ? uncertain : 'the request was answered with a failure',
      failed: isOnce ? uncertain : undefined,
    },
    sent: { sent: 'unknown', isRepeatable: !isOnce, interrupted, failed: uncertain },
    answered: {
      // An answer without a receipt may come from a gateway, so the service may not have received the event.
      sent: isProvedByReceipt ? 'unknown' : 'yes',
      isRepeatable: !isOnce,
      interrupted: isOnce ? interrupted : 'the answer was cut off',
      failed: isProvedByReceipt ? uncertain : undefined,
    },
    done: { sent: 'yes', isRepeatable: !isOnce },
  }
  return { mayDuplicate: repeat !== 'always' && !isCertainlyUnaccepted(state), ...outcomes[state] }
}
