/**
 * How far a request got, in the order of risk if it is sent again:
 *
 * - `not-sent`: no byte left.
 * - `refused`: answered, and certainly not carried out: by a 3xx, a 4xx other than 408 and 425, or a 503 with
 *   `Retry-After`.
 * - `failed`: answered by a failure that may hide a success, such as a gateway's.
 * - `sent`: bytes left, and no answer arrived.
 * - `answered`: a 2xx began. Even an error in it does not prove that nothing was carried out.
 * - `done`: the response was read; for an event, its receipt arrived.
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
 * After which failures a request may be repeated: `not-taken` only after an answer that proves it was not
 * accepted, `failed` also after a 5xx, `always` also without an answer.
 */
export type RepeatRule = 'not-taken' | 'failed' | 'always'

/** Properties of an endpoint that decide about a repetition. */
export interface DeliveryRules {
  repeat: RepeatRule
  /** Only a receipt proves that the request was carried out, because a gateway may answer for the service. */
  isProvedByReceipt?: boolean
  /** Possible effect of a request without a receipt. Default: an accepted event. */
  doubt?: string
  /** Command that shows whether the request was carried out. */
  inspectCommand?: string | undefined
}

/** Whether a request was sent. `unknown`: bytes left, and no answer arrived. */
export type Sent = 'no' | 'unknown' | 'yes'

/**
 * Whether a script may run the same command again. `look-first`: the work may be done already, and must not
 * be done twice.
 */
export type RetryAdvice = 'never' | 'later' | 'look-first'

/** Consequences of a delivery state. */
export interface DeliveryOutcome {
  sent: Sent
  /** The same command may send the request again without a check. */
  isRepeatable: boolean
  /** The request may have been carried out, so a repetition may be carried out or billed again. */
  mayDuplicate: boolean
  /** Printed if the run is interrupted in this state. */
  interrupted?: string
  /** Printed if the call fails in this state. */
  failed?: string
}

const describeDoubt = (doubt: string, inspectCommand: string | undefined) =>
  `${doubt}: look${inspectCommand === undefined ? '' : ` with '${inspectCommand}'`} before sending again`

const mayBeDone = 'the request was sent; whether it was carried out is not known'

export function describeDelivery(state: DeliveryState, rules: DeliveryRules): DeliveryOutcome {
  const { repeat, isProvedByReceipt = false, inspectCommand } = rules
  const isOnce = repeat === 'not-taken'
  // Interrupted reading has no consequences.
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
      // An answer to an event that is not a receipt may come from a gateway.
      sent: isProvedByReceipt ? 'unknown' : 'yes',
      isRepeatable: !isOnce,
      interrupted: isOnce ? interruptedDoubt : 'the answer was cut off',
      failed: isProvedByReceipt ? doubt : undefined,
    },
    done: { sent: 'yes', isRepeatable: !isOnce },
  }
  return { ...outcomes[state], mayDuplicate: repeat !== 'always' && !isCertainlyUnaccepted(state) }
}
