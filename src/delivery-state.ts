/**
 * States of a request, in the order of risk if the request is sent again:
 *
 * - `not-sent`: no byte was sent.
 * - `refused`: the answer proves that the request was not carried out. It is a 3xx, a 4xx other than 408 and
 *   425, or a 503 with `Retry-After`.
 * - `failed`: the answer is a failure, but the request may have been carried out, for example behind a
 *   gateway.
 * - `sent`: bytes were sent, and no answer arrived.
 * - `answered`: a 2xx began. The request may have been carried out even if the body is an error.
 * - `done`: parley read the response; after sending an event, parley received the receipt.
 */
export const deliveryStates = ['not-sent', 'refused', 'failed', 'sent', 'answered', 'done'] as const

export type DeliveryState = (typeof deliveryStates)[number]

/** Returns the state of a call after one more attempt: the furthest of all its attempts. */
export const getLaterState = (before: DeliveryState, attempt: DeliveryState): DeliveryState =>
  deliveryStates.indexOf(attempt) > deliveryStates.indexOf(before) ? attempt : before

/** Returns whether the service has certainly not accepted the request. */
export const isCertainlyUnaccepted = (state: DeliveryState | undefined): boolean =>
  state === 'not-sent' || state === 'refused'

/**
 * Failures after which a request may be repeated. `not-taken`: only an answer that proves that the service
 * did not accept the request. `failed`: also a 5xx. `always`: also a missing answer.
 */
export type RepeatRule = 'not-taken' | 'failed' | 'always'

/** Properties of an endpoint that decide whether its requests may be repeated. */
export interface DeliveryRules {
  repeat: RepeatRule
  /** Only a receipt proves that the request was carried out, because a gateway may answer for the service. */
  isProvedByReceipt?: boolean
  /** Message if the receipt of a request is missing. By default: "the event may have been accepted". */
  doubt?: string
  /** Command that shows whether the request was carried out. */
  inspectCommand?: string | undefined
}

/** Answer to "was the request sent?". `unknown`: bytes were sent, and no answer arrived. */
export type Sent = 'no' | 'unknown' | 'yes'

/**
 * Advice to a script about running the same command again. `look-first`: the work may be done already, and
 * must not be done twice.
 */
export type RetryAdvice = 'never' | 'later' | 'look-first'

/** Consequences of a delivery state. */
export interface DeliveryOutcome {
  sent: Sent
  /** The same command may send the request again without a check. */
  isRepeatable: boolean
  /** The request may have been carried out, so a repetition may be carried out or billed again. */
  mayDuplicate: boolean
  /** Text that parley prints if the run is interrupted in this state. */
  interrupted?: string
  /** Text that parley prints if the call fails in this state. */
  failed?: string
}

const describeDoubt = (doubt: string, inspectCommand: string | undefined) =>
  `${doubt}: look${inspectCommand === undefined ? '' : ` with '${inspectCommand}'`} before sending again`

const mayBeDone = 'the request was sent; whether it was carried out is not known'

export function describeDelivery(state: DeliveryState, rules: DeliveryRules): DeliveryOutcome {
  const { repeat, isProvedByReceipt = false, inspectCommand } = rules
  const isOnce = repeat === 'not-taken'
  // A request that only reads has no effect, so its texts mention none.
  const doubt = isProvedByReceipt
    ? describeDoubt(rules.doubt ?? 'the event may have been accepted', inspectCommand)
    : repeat === 'always'
      ? undefined
      : mayBeDone
  const interruptedDoubt = isProvedByReceipt ? doubt : 'the request was sent; it may have been carried out'
  const outcomes: Record<DeliveryState, Omit<DeliveryOutcome, 'mayDuplicate'>> = {
    'not-sent': {
      sent: 'no',
      isRepeatable: true,
      interrupted: 'nothing was sent',
      failed: 'nothing was sent',
    },
    refused: { sent: 'yes', isRepeatable: true, interrupted: 'nothing was accepted' },
    failed: {
      sent: 'yes',
      isRepeatable: !isOnce,
      interrupted: isProvedByReceipt ? doubt : 'the request was answered with a failure',
      failed: isOnce ? doubt : undefined,
    },
    sent: { sent: 'unknown', isRepeatable: !isOnce, interrupted: interruptedDoubt, failed: doubt },
    answered: {
      // Without a receipt, the answer to an event may come from a gateway instead of the service.
      sent: isProvedByReceipt ? 'unknown' : 'yes',
      isRepeatable: !isOnce,
      interrupted: isOnce ? interruptedDoubt : 'the answer was cut off',
      failed: isProvedByReceipt ? doubt : undefined,
    },
    done: { sent: 'yes', isRepeatable: !isOnce },
  }
  return { ...outcomes[state], mayDuplicate: repeat !== 'always' && !isCertainlyUnaccepted(state) }
}
