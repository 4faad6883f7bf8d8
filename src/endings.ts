import {
  type DeliveryRules,
  type DeliveryState,
  deliveryStates,
  describeDelivery,
  getLaterState,
  type RetryAdvice,
  type Sent,
} from './delivery-state.ts'
import { asFailure, CliError, joinSavedFiles, OutputClosed, type SavedFiles } from './errors.ts'
import { ShortLivedSet } from './short-lived-set.ts'

/**
 * Consequences if a piece of work fails or is interrupted. Its functions are synchronous, because signal
 * handlers call them.
 */
export interface Ending {
  /**
   * The work may change data of a service. Then requests that only read do not count for the outcome of the
   * run.
   */
  isChange?: boolean
  /** Saves received data at an interrupt, before `words` is called. */
  save?(): { words: string; file: string | undefined }[]
  /** Returns the consequence of an interrupt. */
  words?(): string | undefined
  /** Returns the command that resumes the work, without `parley`. */
  resume?(): string[] | undefined
  /**
   * Returns whether the same command repeats a request that may have been carried out. Returns `undefined` if
   * the same command starts the work again instead of resuming it.
   */
  rerun?(): { mayDuplicate: boolean } | undefined
  /** Adds the consequences to a failure of the work. */
  explain?(failure: CliError): CliError
}

/** One call of a run, from its first attempt to its end. */
export type Call = ReturnType<typeof trackCall>

/** Tracks the work and the calls of a run, and reports their state if the run fails or is interrupted. */
export class Endings {
  /** Work in progress, from the outermost to the innermost piece. */
  readonly #open: Ending[] = []
  /** Changing calls that are in progress, or that ended after the last changing call began. */
  #reported: Call[] = []
  /** Reasons of earlier calls against running the same command again. */
  readonly #objections = new Set<RetryAdvice | undefined>()
  readonly #inProgress = new ShortLivedSet<Call>()
  /** Keeps its value after the work, because a signal may arrive while `main` reports the end. */
  #isChange = false
  #sentBefore: Sent = 'no'
  /** A call that ended may have been carried out. */
  #mayDuplicate = false
  /** The last result that a service has confirmed. */
  #confirmed: string | undefined

  /** Runs `work`. If it fails or is interrupted, parley reports the consequences of `ending`. */
  async during<T>(ending: Ending, work: () => Promise<T>): Promise<T> {
    this.#open.push(ending)
    this.#isChange = ending.isChange ?? this.#isChange
    try {
      return await work()
    } catch (error) {
      throw this.#explain(error, ending)
    } finally {
      this.#open.splice(this.#open.indexOf(ending), 1)
    }
  }

  #explain(error: unknown, ending: Ending): unknown {
    if (error instanceof OutputClosed) return error
    const explained = ending.explain?.(asFailure(error, this.#describeCalls())) ?? error
    return explained instanceof CliError && ending.rerun
      ? explained.with({ mayDuplicate: this.mayDuplicate })
      : explained
  }

  /** Tracks a call. With `isOneOfMany`, the caller prints the outcome itself. */
  begin(rules: DeliveryRules, isOneOfMany = false): Call {
    const isReading = rules.repeat === 'always'
    const call: Call = trackCall(rules, {
      onConfirmed: (result) => {
        this.#confirmed = result
      },
      onEnd: () => this.#end(call, isReading),
    })
    if (!isReading || !this.#isChange) this.#inProgress.add(call)
    // A call that only reads does not replace the outcome of a call that changes something.
    if (isOneOfMany || isReading) return call
    for (const earlier of this.#reported) {
      // A call that may be repeated is no reason against running the command again.
      if (earlier.isOver() && !earlier.getOutcome().isRepeatable) this.#objections.add(findObjection(earlier))
    }
    this.#reported = [...this.#reported.filter((earlier) => !earlier.isOver()), call]
    return call
  }

  #end(call: Call, isReading: boolean): void {
    this.#inProgress.delete(call)
    if (isReading && this.#isChange) return
    const { sent, mayDuplicate } = call.getOutcome()
    this.#sentBefore = getFurther(this.#sentBefore, sent)
    this.#mayDuplicate ||= mayDuplicate
  }

  /**
   * Saves received data. Returns the consequence of an interrupt at this moment, and the names of the saved
   * files.
   */
  interrupt(): { consequence: string | undefined; kept: SavedFiles } {
    const running = describeFurthest(this.#reported.filter((call) => !call.isOver()))
    let kept: SavedFiles
    const words: (string | undefined)[] = []
    for (const ending of this.#open.toReversed()) {
      const saved = ending.save?.() ?? []
      kept = joinSavedFiles(kept, ...saved.map(({ file }) => file))
      words.push(...saved.map((each) => each.words), ending.words?.())
    }
    const after = this.#confirmed !== undefined && running !== undefined ? `after that ${running}` : running
    return { consequence: joinTexts([this.#confirmed, after, ...words]) ?? this.#describeCalls(), kept }
  }

  #describeCalls(): string | undefined {
    const isUnsent = this.#isChange && this.sent === 'no'
    return describeFurthest(this.#reported) ?? (isUnsent ? 'nothing was sent' : undefined)
  }

  /** Returns the command that resumes the interrupted work, without `parley`. */
  getResumeCommand(): string[] | undefined {
    return this.#open.findLast((ending) => ending.resume)?.resume?.()
  }

  /**
   * Returns how far the requests of the run got: `unknown` if some were sent and none was answered. In a run
   * that changes something, only changing requests count.
   */
  get sent(): Sent {
    const all = [...this.#inProgress].map((call) => call.getOutcome().sent)
    return all.reduce(getFurther, this.#sentBefore)
  }

  /** Number of calls in progress that may have been carried out. */
  get unanswered(): number {
    return [...this.#inProgress].filter((call) => call.getOutcome().mayDuplicate).length
  }

  /** Returns whether the same command may repeat a request that was carried out or billed. */
  get mayDuplicate(): boolean {
    if (this.unanswered > 0) return true
    return this.#rerun?.mayDuplicate ?? this.#mayDuplicate
  }

  /** Returns whether the same command may be run again if the run is interrupted now. */
  get retry(): RetryAdvice {
    if (!this.#isChange || this.sent === 'no') return 'later'
    const last = this.#reported.map(findObjection)
    if (last.includes('look-first')) return 'look-first'
    if (this.#rerun) return 'later'
    if (last.length === 0 || last.includes('never') || this.#objections.has('never')) return 'never'
    return this.#objections.has('look-first') ? 'look-first' : 'later'
  }

  get #rerun(): { mayDuplicate: boolean } | undefined {
    return this.#open.findLast((ending) => ending.rerun)?.rerun?.()
  }
}

const joinTexts = (texts: readonly (string | undefined)[]): string | undefined =>
  texts.filter((each) => each !== undefined).join('; ') || undefined

/** Returns the text of the call that got furthest, among the calls that have a text. */
const describeFurthest = (calls: readonly Call[]): string | undefined =>
  deliveryStates
    .flatMap((state) => calls.filter((call) => call.state() === state))
    .findLast((call) => call.getOutcome().interrupted !== undefined)
    ?.getOutcome().interrupted

/** Returns the advice against running the same command again that follows from a call. */
function findObjection(call: Call): RetryAdvice | undefined {
  if (call.state() === 'done') return 'never'
  return call.getOutcome().isRepeatable ? undefined : 'look-first'
}

interface CallEvents {
  onConfirmed(result: string): void
  onEnd(): void
}

function trackCall(rules: DeliveryRules, { onConfirmed, onEnd }: CallEvents) {
  let state: DeliveryState = 'not-sent'
  let before: DeliveryState = state
  let isOver = false
  /** Records how far the current attempt got. */
  function reach(reached: DeliveryState): void {
    if (state !== 'done') state = getLaterState(before, reached)
  }
  return {
    state: () => state,
    isOver: () => isOver,
    getOutcome: () => describeDelivery(state, rules),
    /** Records the start of another attempt. */
    attempt() {
      before = state
    },
    reach,
    /**
     * Records that the request was carried out. If the run is interrupted from now on, parley prints
     * `result`.
     */
    confirm(result?: string) {
      reach('done')
      if (result !== undefined) onConfirmed(result)
    },
    /** Ends the tracking of the call. The caller reports the result or failure. */
    end() {
      isOver = true
      onEnd()
    },
  }
}

const getFurther = (one: Sent, other: Sent): Sent =>
  [one, other].includes('yes') ? 'yes' : [one, other].includes('unknown') ? 'unknown' : 'no'
