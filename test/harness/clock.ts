import type { ChildProcess } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { isMainThread } from 'node:worker_threads'
import { vi } from 'vitest'
import { realTimers, type Timers } from '../../src/timers.ts'

/**
 * Creates a clock that stops while code runs. As soon as all code waits, the clock jumps to the end of the
 * shortest wait, so waits take no real time.
 */
export function createClock(): Timers {
  return createVirtualClock(1_700_000_000_000, setImmediate)
}

/**
 * Creates a clock like `createClock` that also stops while code is loaded, files are used, or commands and
 * threads run, and while code waits for a few turns of the event loop (`yieldToSignals`). A command that never
 * ends would stop the clock forever, so such a run needs another clock.
 */
export function createIdleClock(): Timers {
  return createVirtualClock(Date.now(), async (act) => {
    await vi.dynamicImportSettled()
    for (let idleTurns = 0; idleTurns < 4; idleTurns++) {
      await new Promise(setImmediate)
      if (!isActive()) continue
      idleTurns = 0
      await realTimers.wait(1)
      await vi.dynamicImportSettled()
    }
    act()
  })
}

/**
 * Creates a clock of real time, or of a multiple of real time, that slows down on a busy machine. So a
 * timeout passes only after the event loop had enough turns to read what has arrived: at least a hundred
 * turns in two seconds of real time, or 500 turns if the clock is faster than real time. A faster clock stops while threads work.
 */
export function createSteadyClock(times = 1): Timers {
  const tick = times === 1 ? 10 : 2
  const due: Wait[] = []
  const start = Date.now()
  let passed = 0
  let last = 0
  let ticking: NodeJS.Timeout | undefined

  function turn(): void {
    const real = performance.now()
    if (times === 1 || !hasActiveThread()) passed += Math.min(real - last, 2 * tick) * times
    last = real
    while (due[0] && due[0].at <= passed) due.shift()?.end()
    if (due.length > 0) return
    clearInterval(ticking)
    ticking = undefined
  }

  return {
    ...realTimers,
    // As on a real system, the monotonic clock and the wall clock start at different values.
    now: () => passed,
    wallTime: () => start + passed,
    wait(milliseconds, signal) {
      if (!ticking) {
        last = performance.now()
        ticking = setInterval(turn, tick)
      }
      const at = passed + Math.max(0, milliseconds)
      return addWait(due, { at, signal })
    },
  }
}

/**
 * Commands whose output was not yet read to its end. Some versions of Node list a command as active only
 * until it exits, so Node's list is not enough.
 */
const commands = new Set<ChildProcess>()

subscribe('child_process', (event) => {
  const { process: command } = event as { process: ChildProcess }
  commands.add(command)
  command.once('close', () => commands.delete(command))
})

/** In a thread, such as that of a mutant run, the thread's own port is always active, so nothing is found. */
const hasActiveThread = (): boolean =>
  isMainThread && process.getActiveResourcesInfo().some((name) => /^(Worker|MessagePort)/.test(name))

/** Node's resource names of active file operations and threads. */
const filesAndThreads = /^(FSReq|Worker|MessagePort)/

/** Returns whether a command, thread or file operation is active. A command without an id has not started. */
const isActive = (): boolean =>
  [...commands].some(({ pid }) => pid !== undefined) ||
  process.getActiveResourcesInfo().some((name) => filesAndThreads.test(name))

/** Creates a virtual clock. `whenAllWait` calls its argument once no code is active. */
function createVirtualClock(start: number, whenAllWait: (act: () => void) => unknown): Timers {
  const due: Wait[] = []
  let now = start

  function turn(): void {
    const next = due.shift()
    if (!next) return
    now = Math.max(now, next.at)
    next.end()
    if (due.length > 0) whenAllWait(turn)
  }

  return {
    now: () => now,
    wallTime: () => now,
    random: () => 1,
    wait(milliseconds, signal) {
      const at = now + Math.max(0, milliseconds)
      if (due.length === 0) whenAllWait(turn)
      return addWait(due, { at, signal })
    },
  }
}

interface Wait {
  at: number
  end(): void
}

/** Adds a wait to the list at its place in the order of time. */
function addWait(
  due: Wait[],
  { at, signal }: { at: number; signal: AbortSignal | undefined },
): Promise<void> {
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
}
