/** What is read while requests are under way, always one ahead. */
export interface Intake<T> {
  /** The next one, where it has come. */
  take(): T | undefined
  /** Nothing is left, and nothing comes. */
  readonly isEnded: boolean
  stop(): void
}

export interface IntakeOptions {
  /** The next one has come, or the end. */
  onChange(): void
  /** It ends because it cannot be read further. */
  onError(error: unknown): void
}

export function createIntake<T>(source: AsyncIterable<T>, { onChange, onError }: IntakeOptions): Intake<T> {
  const iterator = source[Symbol.asyncIterator]()
  let ready: IteratorResult<T> | undefined

  function pull(): void {
    ready = undefined
    iterator
      .next()
      .catch((error): IteratorResult<T> => {
        onError(error)
        return { done: true, value: undefined }
      })
      .then((result) => {
        ready = result
        onChange()
      })
  }

  pull()
  return {
    take() {
      if (!ready || ready.done) return undefined
      const { value } = ready
      pull()
      return value
    },
    get isEnded() {
      return ready?.done === true
    },
    stop() {
      // Not waited for: a pipe may be silent for ever.
      iterator.return?.().catch(() => {})
    },
  }
}
