/** Time, which a test can turn. */
export interface Timers {
  /** Milliseconds since the epoch. */
  now(): number
  /** Resolves after so many milliseconds, or once the signal is given. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
}

/** A timer that a wait of more than 24 days does not turn into one of a millisecond. */
export function setTimer(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1))
}

/** Has `act` called after so many milliseconds, unless the function that it returns is called before. */
export function callAfter({ wait }: Timers, milliseconds: number, act: () => void): () => void {
  const isOver = new AbortController()
  void wait(milliseconds, isOver.signal).then(() => {
    if (!isOver.signal.aborted) act()
  })
  return () => isOver.abort()
}

export const realTimers: Timers = {
  now: Date.now,
  wait: (milliseconds, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimer(end, milliseconds)
      signal?.addEventListener('abort', end)
    }),
}
