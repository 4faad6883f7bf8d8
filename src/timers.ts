/** The clocks and chance, which a test can replace. */
export interface Timers {
  /** Milliseconds since some moment. This clock only goes forward: deadlines, pauses and durations are measured by it. */
  now(): number
  /** Milliseconds since the epoch, by the clock on the wall, which may be set back. Only what is shown or kept needs it. */
  wallTime(): number
  /** Resolves after so many milliseconds, or when the signal is aborted. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** From 0 up to 1: for waits that are not to end all at once. */
  random(): number
}

/** When a run has to be over. */
export interface Limit {
  /** By the forward clock; Infinity for none, and before the settings are read. */
  deadline: number
}

/** Like `setTimeout`, but a wait of more than 24 days does not become one of a millisecond. */
export function setLongTimeout(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1))
}

/** Calls `act` after so many milliseconds, unless the returned function is called before. */
export function schedule({ wait }: Timers, milliseconds: number, act: () => void): () => void {
  const isOver = new AbortController()
  void wait(milliseconds, isOver.signal).then(() => {
    if (!isOver.signal.aborted) act()
  })
  return () => isOver.abort()
}

/** Resolves with `work`; throws what `late` makes if `time`, by the forward clock, comes first. */
export async function withTimeLimit<T>(
  work: Promise<T>,
  { time, timers }: { time: number; timers: Timers },
  late: () => Error,
): Promise<T> {
  if (time === Infinity) return work
  let cancel = () => {}
  const end = new Promise<never>((_, reject) => {
    cancel = schedule(timers, time - timers.now(), () => reject(late()))
  })
  return Promise.race([work, end]).finally(cancel)
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
