import { schedule, setLongTimeout, type Timers } from '../timers.ts'

/** The limits of one exchange. */
export interface TimeLimits {
  /** Milliseconds: the longest wait for the response's head, and the longest silence after it; 0 for none. */
  timeout: number
  /** By the forward clock; Infinity for none. */
  deadline: number
  timers: Timers
}

/** Calls `onEnd` once, when a limit is over. */
export function createTimeLimits(
  { timeout, deadline, timers }: TimeLimits,
  onEnd: (why: string, isDeadline: boolean) => void,
) {
  let silence: NodeJS.Timeout | undefined
  let isPaused = false
  let isOver = false
  /** How often bytes came. */
  let refreshes = 0
  const cancelDeadline =
    deadline === Infinity
      ? undefined
      : schedule(timers, deadline - timers.now(), () => onEnd('the deadline passed', true))

  function start(): void {
    refreshes++
    clearTimeout(silence)
    if (timeout === 0 || isPaused || isOver) return
    silence = setLongTimeout(expire, timeout)
  }

  /** A process that was held up finds its timers due before it has looked for the bytes that came meanwhile. */
  function expire(): void {
    const before = refreshes
    setImmediate(() => {
      if (refreshes === before && !isPaused && !isOver) onEnd(`no byte came for ${timeout / 1000} s`, false)
    })
  }

  return {
    /** From now on bytes are expected. */
    start,
    /** Some came: the silence is counted from now. */
    refresh() {
      refreshes++
      if (!isPaused && !isOver) silence?.refresh()
    },
    /** While reading is paused, no silence is counted: it is parley that does not read. */
    pause(paused: boolean) {
      isPaused = paused
      start()
    },
    end() {
      // A late reader may still take what is in the queue, and no timer may keep the process running.
      isOver = true
      clearTimeout(silence)
      cancelDeadline?.()
    },
  }
}
