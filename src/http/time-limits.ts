import { schedule, setLongTimeout, type Timers } from '../timers.ts'

/** Time limits of one exchange. */
export interface TimeLimits {
  /** Maximum wait for the response's headers, and maximum silence after them, in milliseconds; 0 for none. */
  timeout: number
  /** Monotonic time in milliseconds, or Infinity. */
  deadline: number
  timers: Timers
}

/** Calls `onEnd` once, when a limit is exceeded. */
export function createTimeLimits(
  { timeout, deadline, timers }: TimeLimits,
  onEnd: (why: string, isDeadline: boolean) => void,
) {
  let silence: NodeJS.Timeout | undefined
  let isPaused = false
  let isOver = false
  /** Number of received chunks. */
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

  /** A suspended process sees due timers before the bytes that arrived meanwhile. */
  function expire(): void {
    const before = refreshes
    setImmediate(() => {
      if (refreshes === before && !isPaused && !isOver) onEnd(`no byte came for ${timeout / 1000} s`, false)
    })
  }

  return {
    /** Starts to expect bytes. */
    start,
    /** Bytes arrived: the silence starts again. */
    refresh() {
      refreshes++
      if (!isPaused && !isOver) silence?.refresh()
    },
    /** While reading is paused, silence does not count, because parley does not read. */
    pause(paused: boolean) {
      isPaused = paused
      start()
    },
    end() {
      // A slow reader may still drain the queue, and no timer may keep the process running.
      isOver = true
      clearTimeout(silence)
      cancelDeadline?.()
    },
  }
}
