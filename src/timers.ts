/** The clock and chance, which a test can replace. */
export interface Timers {
  /** Milliseconds since the epoch. Somebody may set this clock back. */
  now(): number
  /** Milliseconds of a clock that only goes forward: for how long something takes. */
  steady(): number
  /** Resolves after so many milliseconds, or when the signal is aborted. */
  wait(milliseconds: number, signal?: AbortSignal): Promise<void>
  /** From 0 up to 1: for waits that are not to end all at once. */
  random(): number
}

/** When a run has to be over. */
export interface Limit {
  /** Milliseconds since the epoch; Infinity for none, and before the settings are read. */
  deadline: number
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

/** Resolves with `work`; throws what `late` makes if `time`, in milliseconds since the epoch, comes first. */
export async function inTime<T>(
  work: Promise<T>,
  { time, timers }: { time: number; timers: Timers },
  late: () => Error,
): Promise<T> {
  if (time === Infinity) return work
  let cancel = () => {}
  const end = new Promise<never>((_, reject) => {
    cancel = callAfter(timers, time - timers.now(), () => reject(late()))
  })
  return Promise.race([work, end]).finally(cancel)
}

export const realTimers: Timers = {
  now: Date.now,
  steady: () => performance.now(),
  random: Math.random,
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
