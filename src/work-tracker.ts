import { ArraySet } from './array-set.ts'
import {
  type DeliveryRules,
  type DeliveryState,
  deliveryStates,
  describeDelivery,
  getLaterDeliveryState,
  type RetryAdvice,
  type SentStatus,
} from './delivery-state.ts'
import { type CliError, OutputClosedError, toFailure } from './errors.ts'
import { addSavedDataToFailure, describeSavedData, type SavedData } from './io/saved-data.ts'

/**
 * parley calls the hooks if the work fails, or if a signal ends parley during the work. The hooks are
 * synchronous, because signal handlers call them.
 */
export interface WorkHooks {
  save?(): (SavedData | undefined)[]
  /** Returns the message to print if a signal ends parley now. Called after `save`. */
  onInterrupt?(): string | undefined
  getResumeCommand?(): string[] | undefined
  /**
   * Describes a second run of the same command. `mayDuplicate`: the second run may repeat a request that was
   * carried out. `retry` replaces the advice that follows from the delivery of the requests. Returns
   * `undefined` if the second run would start from the beginning.
   */
  describeRerun?(): { mayDuplicate?: boolean; retry?: RetryAdvice } | undefined
  /** Called after `save`. */
  explain?(failure: CliError): CliError
}

/** A request with all its attempts, from the first attempt to the response or failure. */
export type TrackedCall = ReturnType<typeof createCall>

export class WorkTracker {
  readonly #hooks: WorkHooks[] = []
  /** The latest call that changes data, and the calls that were in progress when it began. */
  #latestChanges: TrackedCall[] = []
  readonly #earlierAdvice = new Set<RetryAdvice | undefined>()
  readonly #inProgress = new ArraySet<TrackedCall>()
  /**
   * Requests of the command; `undefined` if it sends none. If it may change data of a service, `sent` and
   * `retry` describe only the requests that change data.
   */
  requests: 'changes' | 'reads' | undefined
  readonly #sentByEnded = new Set<SentStatus>()
  #isBatch = false
  #mayDuplicate = false
  /** Message about the last accepted request, such as `the task was accepted`. */
  #acceptedMessage: string | undefined

  async during<T>(hooks: WorkHooks, work: () => Promise<T>): Promise<T> {
    this.#hooks.push(hooks)
    try {
      return await work()
    } catch (error) {
      throw this.#explain(error, hooks)
    } finally {
      this.#hooks.splice(this.#hooks.indexOf(hooks), 1)
    }
  }

  #explain(error: unknown, hooks: WorkHooks): unknown {
    if (error instanceof OutputClosedError) return error
    const saved = saveParts(hooks)
    if (saved.length === 0 && !hooks.explain && !hooks.describeRerun) return error
    const failure = saved.reduce(
      addSavedDataToFailure,
      toFailure(error, describeInterrupt(this.#latestChanges) ?? this.#unsentText),
    )
    const explained = hooks.explain?.(failure) ?? failure
    return hooks.describeRerun ? explained.with({ mayDuplicate: this.mayDuplicate }) : explained
  }

  /**
   * With `isOfBatch`, `interrupt` does not describe the call, because a batch prints the results of its calls
   * itself.
   */
  beginCall(rules: DeliveryRules, isOfBatch = false): TrackedCall {
    const isReading = rules.repeat === 'always'
    const isCounted = !isReading || this.requests !== 'changes'
    const call: TrackedCall = createCall(rules, isCounted, {
      onAccepted: (message) => {
        this.#acceptedMessage = message
      },
      onEnd: () => this.#endCall(call),
    })
    if (isCounted) this.#inProgress.add(call)
    this.#isBatch ||= isOfBatch
    if (isOfBatch || isReading) return call
    for (const earlier of this.#latestChanges)
      if (earlier.isOver() && !earlier.getOutcome().isRepeatable)
        this.#earlierAdvice.add(adviseAfter(earlier))
    this.#latestChanges = [...this.#latestChanges.filter((earlier) => !earlier.isOver()), call]
    return call
  }

  #endCall(call: TrackedCall): void {
    this.#inProgress.delete(call)
    if (!call.isCounted) return
    const { sent, mayDuplicate } = call.getOutcome()
    this.#sentByEnded.add(sent)
    this.#mayDuplicate ||= mayDuplicate
  }

  interrupt(): { consequence: string | undefined; savedFiles: string[] } {
    const running = describeInterrupt(this.#latestChanges.filter((call) => !call.isOver()))
    const savedFiles: string[] = []
    const texts: (string | undefined)[] = []
    for (const hooks of this.#hooks.toReversed()) {
      const saved = saveParts(hooks)
      savedFiles.push(...saved.flatMap(({ name }) => name ?? []))
      texts.push(...saved.map((part, index) => describeSavedData(part, index === 0)), hooks.onInterrupt?.())
    }
    const after =
      this.#acceptedMessage !== undefined && running !== undefined ? `after that ${running}` : running
    const unsent = this.getResumeCommand() ? undefined : this.#unsentText
    const consequence =
      joinTexts([unsent, this.#acceptedMessage, after, ...texts]) ?? describeInterrupt(this.#latestChanges)
    return { consequence, savedFiles }
  }

  get #unsentText(): string | undefined {
    return this.requests && this.sent === 'no' ? 'nothing was sent' : undefined
  }

  /** Adds the state of all requests of the run to its failure. */
  addRequestState(failure: CliError): CliError {
    const { sent = this.sent, mayDuplicate = this.mayDuplicate, consequence } = failure.details
    // A failure of another kind, without its own `sent`, describes a session or an answer.
    const isOfRequest = failure.details.sent !== undefined || ['file', 'not-sent'].includes(failure.kind)
    const unsent = sent === 'no' && isOfRequest ? this.#unsentText : undefined
    return failure.with({ sent, mayDuplicate, consequence: joinTexts([unsent, consequence], '\n') })
  }

  getResumeCommand(): string[] | undefined {
    return this.#hooks.findLast((hooks) => hooks.getResumeCommand)?.getResumeCommand?.()
  }

  /**
   * Returns `yes` if a service has answered a request, `unknown` if parley has sent only unanswered requests,
   * otherwise `no`. For a batch, one unanswered request suffices for `unknown`. In a run that changes data,
   * only the changing requests count.
   */
  get sent(): SentStatus {
    const inProgress = [...this.#inProgress].map((call) => call.getOutcome().sent)
    const all = [...this.#sentByEnded, ...inProgress]
    const order = this.#isBatch ? (['unknown', 'yes'] as const) : (['yes', 'unknown'] as const)
    return order.find((sent) => all.includes(sent)) ?? 'no'
  }

  get mayDuplicate(): boolean {
    if ([...this.#inProgress].some((call) => call.getOutcome().mayDuplicate)) return true
    return this.#describeRerun()?.mayDuplicate ?? this.#mayDuplicate
  }

  get retry(): RetryAdvice {
    const rerun = this.#describeRerun()
    if (rerun?.retry) return rerun.retry
    if (this.requests !== 'changes' || this.sent === 'no') return 'later'
    const last = this.#latestChanges.map(adviseAfter)
    if (last.includes('look-first')) return 'look-first'
    if (rerun) return 'later'
    if (last.length === 0 || last.includes('never') || this.#earlierAdvice.has('never')) return 'never'
    return this.#earlierAdvice.has('look-first') ? 'look-first' : 'later'
  }

  #describeRerun() {
    return this.#hooks.findLast((hooks) => hooks.describeRerun)?.describeRerun?.()
  }
}

const saveParts = (hooks: WorkHooks): SavedData[] => hooks.save?.().filter((part) => part !== undefined) ?? []

export const joinTexts = (texts: readonly (string | undefined)[], separator = '; '): string | undefined =>
  texts.filter((each) => each !== undefined).join(separator) || undefined

const describeInterrupt = (calls: readonly TrackedCall[]): string | undefined =>
  deliveryStates
    .flatMap((state) => calls.filter((call) => call.state() === state))
    .findLast((call) => call.getOutcome().interrupted !== undefined)
    ?.getOutcome().interrupted

function adviseAfter(call: TrackedCall): RetryAdvice | undefined {
  if (call.state() === 'done') return 'never'
  return call.getOutcome().isRepeatable ? undefined : 'look-first'
}

function createCall(
  rules: DeliveryRules,
  isCounted: boolean,
  { onAccepted, onEnd }: { onAccepted(message: string): void; onEnd(): void },
) {
  let state: DeliveryState = 'not-sent'
  let stateBefore: DeliveryState = state
  let isOver = false
  function reach(reached: DeliveryState): void {
    if (state !== 'done') state = getLaterDeliveryState(stateBefore, reached)
  }
  return {
    /** If false, the run's `sent` ignores this call, because it only reads, but the run may change data. */
    isCounted,
    state: () => state,
    isOver: () => isOver,
    getOutcome: () => describeDelivery(state, rules),
    beginAttempt() {
      stateBefore = state
    },
    reach,
    confirm(message?: string) {
      reach('done')
      if (message !== undefined) onAccepted(message)
    },
    end() {
      isOver = true
      onEnd()
    },
  }
}
