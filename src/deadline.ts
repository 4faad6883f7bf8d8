import { ArraySet } from './array-set.ts'
import { schedule, type Timers } from './timers.ts'

/**
 * Monotonic time at which work has to end. `narrow` creates an inner deadline, which passes at its own time
 * or with the outer deadline, whichever is earlier. `moveTo` also moves the waits that have begun.
 */
export class Deadline {
  /** Message of a time limit that parley itself sets; `undefined` for a deadline of the user. */
  readonly limitText: string | undefined
  readonly #timers: Timers
  readonly #outer: Deadline | undefined
  readonly #watches = new ArraySet<() => void>()
  #ownMs: number
  /** A timer may fire a moment before the clock shows its time, so `passed` reads this flag, too. */
  #hasFired = false

  constructor(
    timers: Timers,
    ownMs = Infinity,
    { outer, limitText }: { outer?: Deadline; limitText?: string } = {},
  ) {
    this.#timers = timers
    this.#ownMs = ownMs
    this.#outer = outer
    this.limitText = limitText
  }

  /** Monotonic time; `Infinity` if there is no deadline. */
  get atMs(): number {
    return Math.min(this.#ownMs, this.#outer?.atMs ?? Infinity)
  }

  get leftMs(): number {
    return this.hasPassed ? 0 : this.atMs - this.#timers.now()
  }

  /** The outermost deadline that has passed. Its `limitText` gives the reason. */
  get passed(): Deadline | undefined {
    const isPassed = this.#hasFired || this.#ownMs <= this.#timers.now()
    return this.#outer?.passed ?? (isPassed ? this : undefined)
  }

  get hasPassed(): boolean {
    return this.passed !== undefined
  }

  narrow(ms = Infinity, limitText?: string): Deadline {
    return new Deadline(this.#timers, this.#timers.now() + ms, { outer: this, limitText })
  }

  moveTo(ms: number): void {
    this.#ownMs = ms
    this.#hasFired = false
    for (const restart of this.#watches) restart()
  }

  pass(): void {
    this.moveTo(this.#timers.now())
  }

  onPass(act: (passed: Deadline) => void): () => void {
    const cancelOuter = this.#outer?.onPass(act)
    let cancelOwn = () => {}
    const restart = () => {
      cancelOwn()
      if (this.#ownMs === Infinity) return
      cancelOwn = schedule(this.#timers, this.#ownMs - this.#timers.now(), () => {
        this.#hasFired = true
        act(this)
      })
    }
    restart()
    this.#watches.add(restart)
    return () => {
      this.#watches.delete(restart)
      cancelOwn()
      cancelOuter?.()
    }
  }

  async wait(ms: number): Promise<void> {
    if (ms <= 0 || this.hasPassed) return
    const end = new AbortController()
    const cancel = this.onPass(() => end.abort())
    await this.#timers.wait(ms, end.signal)
    cancel()
  }

  race<T>(work: Promise<T>, createError: (passed: Deadline) => Error): Promise<T> {
    return new Promise((resolve, reject) => {
      const cancel = this.onPass((passed) => reject(createError(passed)))
      void work.then(resolve, reject).then(cancel)
    })
  }
}
