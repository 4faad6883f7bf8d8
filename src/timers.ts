export interface Timers {
  /** Monotonic milliseconds. Deadlines, pauses and durations use this clock. */
  now(): number
  /**
   * Wall-clock milliseconds since the epoch. The wall clock may be set back, so it is only used for display
   * and storage.
   */
  wallTime(): number
  /** Resolves after the time, or when the signal is aborted. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** Returns a number from 0 to 1, which varies the delays between retries. */
  random(): number
}

/** 24 days. Node fires a timer with a longer delay after 1 ms. */
const maxTimeoutMs = 2 ** 31 - 1

/** A longer wait ends after 24 days. */
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
 * Waits until Node has handled a signal that has already arrived. Ctrl-C also ends the other programs of a
 * pipeline, so parley may notice a closed pipe before its own signal. The current turn of the event loop may
 * already have passed the phase that receives signals, so two turns are needed.
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
      const timer = setLongTimeout(end, milliseconds)
      signal?.addEventListener('abort', end)
    }),
}
