import { ActiveSet } from './active-set.ts'

/**
 * How far a call got, in the order of what it would mean to send it again:
 *
 * - `not-sent`: no byte left.
 * - `refused`: answered, and certainly not carried out: by a 3xx, a 4xx but 408 and 425, or a 503 with `Retry-After`.
 * - `failed`: answered by a failure that may hide a success, as of a gateway.
 * - `sent`: bytes left, and no answer came.
 * - `answered`: a 2xx began, whatever it says: an error in it does not prove that nothing was carried out.
 * - `done`: the response was read; of an event, its receipt came.
 */
export const deliveryStates = ['not-sent', 'refused', 'failed', 'sent', 'answered', 'done'] as const

export type DeliveryState = (typeof deliveryStates)[number]

/** The fate of a call after one more attempt: the furthest of all its attempts. */
export const laterState = (before: DeliveryState, attempt: DeliveryState): DeliveryState =>
  deliveryStates.indexOf(attempt) > deliveryStates.indexOf(before) ? attempt : before

/** The service has certainly not taken the request. */
export const isCertainlyUnaccepted = (fate: DeliveryState | undefined): boolean =>
  fate === 'not-sent' || fate === 'refused'

/**
 * When a request may be sent again: `not-taken` only after an answer that says it was not
 * taken, `failed` also after a 5xx, `always` also when no answer came.
 */
export type Repeat = 'not-taken' | 'failed' | 'always'

/** What of an endpoint decides what a fate means. */
export interface DeliveryRules {
  repeat: Repeat
  /** Only a receipt proves that the request was carried out: a gateway may answer for the service, in either way. */
  isProvedByReceipt?: boolean
  /** The command that shows what became of it. */
  inspectCommand?: string | undefined
}

/** Whether a request was sent. `unknown`: it left, and no answer came. */
export type Sent = 'no' | 'unknown' | 'yes'

/**
 * Whether a script may run the same command again. `look-first`: its work may be done already, and must not be done twice.
 */
export type RetryAdvice = 'never' | 'later' | 'look-first'

/** What a fate means for what was to be done. */
export interface DeliveryOutcome {
  sent: Sent
  /** The same request may be sent again without harm. */
  safeToRetry: boolean
  /** Printed if the run is interrupted there. */
  interrupted?: string
  /** Printed if the call fails there. */
  failed?: string
}

const mayBeAccepted = (look: string | undefined) =>
  `the event may have been accepted: look${look === undefined ? '' : ` with '${look}'`} before sending again`

const mayBeDone = 'the request was sent; whether it was carried out is not known'

export function describeDelivery(
  fate: DeliveryState,
  { repeat, isProvedByReceipt = false, inspectCommand }: DeliveryRules,
): DeliveryOutcome {
  const isOnce = repeat === 'not-taken'
  // An interrupted reading leaves nothing in doubt.
  const doubt = isProvedByReceipt
    ? mayBeAccepted(inspectCommand)
    : repeat === 'always'
      ? undefined
      : mayBeDone
  const interruptedDoubt = isProvedByReceipt ? doubt : 'the request was sent; it may have been carried out'
  const meanings: Record<DeliveryState, DeliveryOutcome> = {
    'not-sent': {
      sent: 'no',
      safeToRetry: true,
      interrupted: 'nothing was sent',
      failed: 'nothing was sent',
    },
    refused: { sent: 'yes', safeToRetry: true, interrupted: 'nothing was accepted' },
    failed: {
      sent: 'yes',
      safeToRetry: !isOnce,
      interrupted: isProvedByReceipt ? doubt : 'the request was answered with a failure',
      failed: isOnce ? doubt : undefined,
    },
    sent: { sent: 'unknown', safeToRetry: !isOnce, interrupted: interruptedDoubt, failed: doubt },
    answered: {
      // What answers an event with anything but a receipt may be a gateway, and not the service.
      sent: isProvedByReceipt ? 'unknown' : 'yes',
      safeToRetry: !isOnce,
      interrupted: isOnce ? interruptedDoubt : 'the answer was cut off',
      failed: isProvedByReceipt ? doubt : undefined,
    },
    done: { sent: 'yes', safeToRetry: !isOnce },
  }
  return meanings[fate]
}

/** One call of a run, from its first attempt to its end. */
export type Call = ReturnType<typeof track>

/** Words for the person at the terminal. */
type Words = () => string | undefined

/** The calls of a run: those under way, and the last ones that were. */
export class Calls {
  /** How to resume: printed after what became of the calls if the run is interrupted. */
  wayOn: Words = nothing
  /** Whether the same command resumes what this run has done, and does not do it again. */
  isResumed = () => false
  /** Those that change something, and are under way or ended after the last one began; with whether they are over. */
  readonly #told = new Map<Call, boolean>()
  /** What the earlier ones say against running the same command again. */
  readonly #past = new Set<RetryAdvice | undefined>()
  readonly #underWay = new ActiveSet<Call>()
  #sentBefore: Sent = 'no'
  #isChanging = false
  #words: Words = nothing
  /** What `sayInstead` was given last. */
  #instead: Words | undefined
  #certain: string | undefined
  #first: Words = nothing

  /** One of many has a caller that prints their outcomes itself. */
  begin(stakes: DeliveryRules, isOneOfMany = false): Call {
    const isReading = stakes.repeat === 'always'
    const call: Call = track(stakes, () => this.#end(call, isReading))
    if (!isReading || !this.#isChanging) this.#underWay.add(call)
    // What only reads takes nothing away.
    if (isOneOfMany || isReading) return call
    for (const [other, isOver] of this.#told) {
      if (!isOver) continue
      this.#told.delete(other)
      // An answer that was read, and was not what was wanted, takes nothing away.
      if (!other.meaning().safeToRetry) this.#past.add(objectionOf(other))
    }
    this.#told.set(call, false)
    this.#words = () => this.#describe()
    return call
  }

  #end(call: Call, isReading: boolean): void {
    this.#underWay.delete(call)
    if (isReading && this.#isChanging) return
    this.#sentBefore = further(this.#sentBefore, call.meaning().sent)
    if (this.#told.has(call)) this.#told.set(call, true)
    if (this.#instead && [...this.#told.values()].every((isOver) => isOver)) this.#words = this.#instead
  }

  #describe(): string | undefined {
    const isUnderWay = [...this.#told.values()].includes(false)
    const told = [...this.#told.keys()].filter((call) => !isUnderWay || this.#told.get(call) === false)
    // Of several the one that got furthest counts, if it leaves anything to be said.
    const meant = deliveryStates
      .flatMap((fate) => told.filter((call) => call.fate() === fate))
      .findLast((call) => call.meaning().interrupted !== undefined)
      ?.meaning().interrupted
    const isAfter = this.#certain !== undefined && meant !== undefined
    return inTurn([this.#certain, isAfter ? `after that ${meant}` : meant, this.wayOn()])
  }

  /**
   * How far the requests of the run got: `unknown` if some left and none was answered. Of a run that is to change something
   * only those that do so count.
   */
  get sent(): Sent {
    const all = [...this.#underWay].map((call) => call.meaning().sent)
    return all.reduce(further, this.#sentBefore)
  }

  /** Whether the same command may be run again if the run is interrupted now. */
  get retry(): RetryAdvice {
    if (!this.#isChanging || this.sent === 'no') return 'later'
    const last = [...this.#told.keys()].map(objectionOf)
    if (last.includes('look-first')) return 'look-first'
    if (this.isResumed()) return 'later'
    if (last.length === 0 || last.includes('never') || this.#past.has('never')) return 'never'
    return this.#past.has('look-first') ? 'look-first' : 'later'
  }

  /** The run is to change something, and nothing that does so was sent yet. */
  expectChange(): void {
    this.#isChanging = true
    this.#words = () => 'nothing was sent'
  }

  /** The run only reads after all. */
  expectReading(): void {
    this.#isChanging = false
    this.#words = nothing
  }

  /**
   * Overrides the words of an interrupted run, after `certain`, which is certain by then. While a call that changes something
   * is under way, `certain` and the fate of that call are printed; these words are again once it is over.
   */
  sayInstead(words: Words, certain?: string): void {
    this.#certain = certain
    this.#instead = () => inTurn([certain, words()])
    this.#words = this.#instead
  }

  /** Until `work` is done, these words come before all others of an interrupted run. */
  async sayFirst<T>(words: Words, work: () => Promise<T>): Promise<T> {
    this.#first = words
    try {
      return await work()
    } finally {
      this.#first = nothing
    }
  }

  /** Printed if the run is interrupted now. */
  lastWords(): string | undefined {
    return inTurn([this.#first(), this.#words()])
  }
}

const nothing = () => undefined

const inTurn = (said: readonly (string | undefined)[]): string | undefined =>
  said.filter((each) => each !== undefined).join('; ') || undefined

/** What a call says against running the same command again. */
function objectionOf(call: Call): RetryAdvice | undefined {
  if (call.fate() === 'done') return 'never'
  return call.meaning().safeToRetry ? undefined : 'look-first'
}

function track(stakes: DeliveryRules, end: () => void) {
  let fate: DeliveryState = 'not-sent'
  let before: DeliveryState = fate
  return {
    fate: () => fate,
    meaning: () => describeDelivery(fate, stakes),
    /** Another attempt begins. */
    attempt() {
      before = fate
    },
    /** The current attempt got this far. */
    reach(reached: DeliveryState) {
      if (fate !== 'done') fate = laterState(before, reached)
    },
    /** The call is over. Its result or its failure has the rest. */
    end,
  }
}

const further = (one: Sent, other: Sent): Sent =>
  [one, other].includes('yes') ? 'yes' : [one, other].includes('unknown') ? 'unknown' : 'no'
