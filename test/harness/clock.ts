import type { Timers } from '../../src/timers.ts'

/** Time that passes only while everybody waits: the wait that is due first ends first. */
export function createClock(): Timers {
  const due: { at: number; end(): void }[] = []
  let now = 1_700_000_000_000

  function turn(): void {
    const next = due.shift()
    if (!next) return
    now = Math.max(now, next.at)
    next.end()
    if (due.length > 0) setImmediate(turn)
  }

  return {
    now: () => now,
    wait(milliseconds, signal) {
      const at = now + Math.max(0, milliseconds)
      if (due.length === 0) setImmediate(turn)
      const place = due.findIndex((other) => other.at > at)
      return new Promise((end) => {
        const mine = { at, end }
        due.splice(place < 0 ? due.length : place, 0, mine)
        signal?.addEventListener('abort', () => {
          const left = due.indexOf(mine)
          if (left >= 0) due.splice(left, 1)
          end()
        })
      })
    },
  }
}
