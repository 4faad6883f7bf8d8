/** Tests replace the clocks and the random numbers. */
export interface Timers {
  /** Monotonic milliseconds. Deadlines, pauses and durations use this clock. */
  now(): number
  /**
   * Wall-clock milliseconds since the epoch. The wall clock may be set back, so it is only used for display
   * and storage.
   */
  wallTime(): number
  /** Also resolves when the signal is aborted. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Retries vary their waits with this number from 0 to 1. */
  random(): number
}

/** 24 days. A timer with a longer delay fires after 1 ms. */
const maxTimeoutMs = 2 ** 31 - 1

export function setLongTimeout(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), maxTimeoutMs))
}

export function schedule({ wait }: Timers, milliseconds: number, act: () => void): () => void {
  const isOver = new AbortController()
  void wait(milliseconds, isOver.signal).then(() => {
    if (!isOver.signal.aborted) act()
  })
  return () => isOver.abort()
}

/**
 * Lets Node handle a signal that has arrived. Ctrl-C also ends the other programs of a pipeline, and parley can
 * see the end of its input or its closed stdout first. The first turn of the event loop may already have passed
 * the phase that receives signals.
 */
export async function yieldToSignals(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
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
