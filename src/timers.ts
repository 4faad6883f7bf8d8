/** Clocks, timers and random numbers. Tests replace them. */
export interface Timers {
  /** Monotonic milliseconds. Deadlines, pauses and durations use this clock. */
  now(): number
  /**
   * Wall-clock milliseconds since the epoch. The wall clock may be set back, so it is only used for display
   * and storage.
   */
  wallTime(): number
  /** Resolves after this time, or when the signal is aborted. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Returns a number from 0 to 1. Retries use it to vary their waits. */
  random(): number
}

/** Maximum delay of Node's timers, 24 days. A timer with a longer delay fires after 1 ms. */
const maxTimeoutMs = 2 ** 31 - 1

/** Calls `setTimeout` with a delay of at most 24 days. */
export function setLongTimeout(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), maxTimeoutMs))
}

/** Calls `act` after this time. The returned function cancels the call. */
export function schedule({ wait }: Timers, milliseconds: number, act: () => void): () => void {
  const isOver = new AbortController()
  void wait(milliseconds, isOver.signal).then(() => {
    if (!isOver.signal.aborted) act()
  })
  return () => isOver.abort()
}

export const realTimers: Timers = {
  now: () => Math.floor(performance.now()),
  wallTime: Date.now,
  random: Math.random,
  wait: (milliseconds, signal) =>
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', end)
        resolve()
      }
      let timer: NodeJS.Timeout
      const start = (left: number) => {
        timer = setLongTimeout(left > maxTimeoutMs ? () => start(left - maxTimeoutMs) : end, left)
      }
      start(milliseconds)
      signal?.addEventListener('abort', end)
    }),
}
