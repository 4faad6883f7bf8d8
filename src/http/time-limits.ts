import type { Deadline } from '../deadline.ts'
import { setLongTimeout } from '../timers.ts'

/**
 * Calls `onEnd` once, when a limit is exceeded. `maxSilenceMs` limits the wait for the response's headers and
 * for each further part of the response. 0 means no limit. A batch has no `deadline`, because it cancels its
 * requests itself.
 */
export function createTimeLimits(
  maxSilenceMs: number,
  deadline: Deadline | undefined,
  onEnd: (why: string, passed?: Deadline) => void,
) {
  let silence: NodeJS.Timeout | undefined
  let isPaused = false
  let isOver = false
  let refreshes = 0
  const cancelDeadline = deadline?.onPass((passed) =>
    onEnd(passed.limitText ?? 'the deadline passed', passed),
  )

  function start(): void {
    refreshes++
    clearTimeout(silence)
    if (maxSilenceMs === 0 || isPaused || isOver) return
    silence = setLongTimeout(expire, maxSilenceMs)
  }

  /**
   * After a suspension of the process, Node runs due timers before it reads the bytes that arrived meanwhile.
   * So the timer waits for one more turn of the event loop.
   */
  function expire(): void {
    const before = refreshes
    setImmediate(() => {
      if (refreshes === before && !isPaused && !isOver) onEnd(`no byte arrived for ${maxSilenceMs / 1000} s`)
    })
  }

  return {
    start,
    refresh() {
      refreshes++
      if (!isPaused && !isOver) silence?.refresh()
    },
    /** While parley does not read the body, it receives no bytes, so the limit for silence does not apply. */
    pause(paused: boolean) {
      isPaused = paused
      start()
    },
    end() {
      // A slow reader may still read the buffered body. A timer would then only keep the process running, so
      // no timer starts after this call.
      isOver = true
      clearTimeout(silence)
      cancelDeadline?.()
    },
  }
}
