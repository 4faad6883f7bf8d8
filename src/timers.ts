/** The clock, which a test can replace. */
export interface Timers {
  /** Milliseconds since the epoch. */
  now(): number
  /** Resolves after so many milliseconds, or when the signal is aborted. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
}

/** Like `setTimeout`, but a wait of more than 24 days does not become one of a millisecond. */
export function setTimer(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1))
}

/** Calls `act` after so many milliseconds, unless the returned function is called before. */
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
