import { ActiveSet } from './active-set.ts'

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

/** One call of a run, from its first attempt to its end. */
export type Call = ReturnType<typeof trackCall>

/** Text for the person at the terminal. */
type CreateText = () => string | undefined

/** The calls of a run: those in progress, and the last finished ones. */
export class Calls {
  /** Returns how to resume. Printed after the states of the calls if the run is interrupted. */
  describeResume: CreateText = noText
  /** Returns whether the same command resumes this run instead of repeating it. */
  isResumed = () => false
  /** Returns whether the resumed run repeats a request that may have been carried out. */
  mayResumeDuplicate = () => false
  /**
   * Changing calls that are in progress, or that ended after the last changing call began. The value is true
   * for an ended call.
   */
  readonly #reported = new Map<Call, boolean>()
  /** Objections of earlier calls to running the same command again. */
  readonly #objections = new Set<RetryAdvice | undefined>()
  readonly #inProgress = new ActiveSet<Call>()
  #sentBefore: Sent = 'no'
  /** A finished call may have been carried out. */
  #mayDuplicate = false
  #isChanging = false
  #text: CreateText = noText
  /** The last argument of `setInterruptText`. */
  #replacement: CreateText | undefined
  #certain: string | undefined
  #prefix: CreateText = noText

  /** With `isOneOfMany`, the caller prints the outcome itself. */
  begin(rules: DeliveryRules, isOneOfMany = false): Call {
    const isReading = rules.repeat === 'always'
    const call: Call = trackCall(rules, () => this.#end(call, isReading))
    if (!isReading || !this.#isChanging) this.#inProgress.add(call)
    // A reading call does not replace the outcome of a changing call.
    if (isOneOfMany || isReading) return call
    for (const [other, isOver] of this.#reported) {
      if (!isOver) continue
      this.#reported.delete(other)
      // Repeating a request whose answer was read but not as wanted does no harm.
      if (!other.getOutcome().isRepeatable) this.#objections.add(findObjection(other))
    }
    this.#reported.set(call, false)
    this.#text = () => this.#describe()
    return call
  }

  #end(call: Call, isReading: boolean): void {
    this.#inProgress.delete(call)
    if (isReading && this.#isChanging) return
    const { sent, mayDuplicate } = call.getOutcome()
    this.#sentBefore = getFurther(this.#sentBefore, sent)
    this.#mayDuplicate ||= mayDuplicate
    if (this.#reported.has(call)) this.#reported.set(call, true)
    if (this.#replacement && [...this.#reported.values()].every((isOver) => isOver))
      this.#text = this.#replacement
  }

  #describe(): string | undefined {
    const isInProgress = [...this.#reported.values()].includes(false)
    const relevant = [...this.#reported.keys()].filter(
      (call) => !isInProgress || this.#reported.get(call) === false,
    )
    // Uses the text of the call that got furthest, among the calls that have a text.
    const outcome = deliveryStates
      .flatMap((state) => relevant.filter((call) => call.state() === state))
      .findLast((call) => call.getOutcome().interrupted !== undefined)
      ?.getOutcome().interrupted
    const isAfter = this.#certain !== undefined && outcome !== undefined
    return joinTexts([this.#certain, isAfter ? `after that ${outcome}` : outcome, this.describeResume()])
  }

  /**
   * Returns how far the requests of the run got: `unknown` if some were sent and none was answered. In a run
   * that changes something, only changing requests count.
   */
  get sent(): Sent {
    const all = [...this.#inProgress].map((call) => call.getOutcome().sent)
    return all.reduce(getFurther, this.#sentBefore)
  }

  /** Returns whether the same command may repeat a request that was carried out or billed. */
  get mayDuplicate(): boolean {
    if ([...this.#inProgress].some((call) => call.getOutcome().mayDuplicate)) return true
    return this.isResumed() ? this.mayResumeDuplicate() : this.#mayDuplicate
  }

  /** Returns whether the same command may be run again if the run is interrupted now. */
  get retry(): RetryAdvice {
    if (!this.#isChanging || this.sent === 'no') return 'later'
    const last = [...this.#reported.keys()].map(findObjection)
    if (last.includes('look-first')) return 'look-first'
    if (this.isResumed()) return 'later'
    if (last.length === 0 || last.includes('never') || this.#objections.has('never')) return 'never'
    return this.#objections.has('look-first') ? 'look-first' : 'later'
  }

  /**
   * Prepares for a run that will change something. Until a request is sent, the text is "nothing was sent".
   */
  expectChange(): void {
    this.#isChanging = true
    this.#text = () => 'nothing was sent'
  }

  /** Prepares for a run that only reads. */
  expectReading(): void {
    this.#isChanging = false
    this.#text = noText
  }

  /**
   * Replaces the text of an interrupted run. `certain` precedes the text. While a changing call is in
   * progress, `certain` and the state of that call are printed; after the call this text applies again.
   */
  setInterruptText(createText: CreateText, certain?: string): void {
    this.#certain = certain
    this.#replacement = () => joinTexts([certain, createText()])
    this.#text = this.#replacement
  }

  /** While `work` runs, this text precedes all others of an interrupted run. */
  async withInterruptPrefix<T>(createText: CreateText, work: () => Promise<T>): Promise<T> {
    this.#prefix = createText
    try {
      return await work()
    } finally {
      this.#prefix = noText
    }
  }

  /** Returns the text for an interruption now. */
  describeInterrupt(): string | undefined {
    return joinTexts([this.#prefix(), this.#text()])
  }
}

const noText = () => undefined

const joinTexts = (texts: readonly (string | undefined)[]): string | undefined =>
  texts.filter((each) => each !== undefined).join('; ') || undefined

/** Returns the objection of a call to running the same command again. */
function findObjection(call: Call): RetryAdvice | undefined {
  if (call.state() === 'done') return 'never'
  return call.getOutcome().isRepeatable ? undefined : 'look-first'
}

function trackCall(rules: DeliveryRules, end: () => void) {
  let state: DeliveryState = 'not-sent'
  let before: DeliveryState = state
  return {
    state: () => state,
    getOutcome: () => describeDelivery(state, rules),
    /** Another attempt begins. */
    attempt() {
      before = state
    },
    /** The current attempt got this far. */
    reach(reached: DeliveryState) {
      if (state !== 'done') state = getLaterState(before, reached)
    },
    /** Ends the tracking of the call. The caller reports the result or failure. */
    end,
  }
}

const getFurther = (one: Sent, other: Sent): Sent =>
  [one, other].includes('yes') ? 'yes' : [one, other].includes('unknown') ? 'unknown' : 'no'
