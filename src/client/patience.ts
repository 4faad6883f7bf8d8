import { setTimer } from './timer.ts'

/** How long an exchange is waited for. */
export interface Patience {
  /** From now on bytes are awaited. */
  start(): void
  /** Some came: the silence begins anew. */
  refresh(): void
  /** While it is held, silence counts against nobody: it is of our own making. */
  hold(isHeld: boolean): void
  end(): void
}

export interface PatienceOptions {
  /** Milliseconds: the longest silence; 0 for none. */
  timeout: number
  /** Milliseconds since the epoch; 0 for none. */
  deadline: number
  /** Called once, when either has run out. */
  onEnd(why: string, isDeadline: boolean): void
}

export function createPatience({ timeout, deadline, onEnd }: PatienceOptions): Patience {
  let silence: NodeJS.Timeout | undefined
  let isHeld = false
  let isOver = false
  const overall =
    deadline > 0 ? setTimer(() => onEnd('the deadline passed', true), deadline - Date.now()) : undefined

  function start(): void {
    clearTimeout(silence)
    if (timeout === 0 || isHeld || isOver) return
    silence = setTimer(() => onEnd(`no byte came for ${timeout / 1000} s`, false), timeout)
  }

  return {
    start,
    refresh() {
      if (!isHeld && !isOver) silence?.refresh()
    },
    hold(held) {
      isHeld = held
      start()
    },
    end() {
      // A late reader may still take up what is held, and no timer may keep the process from its end.
      isOver = true
      clearTimeout(silence)
      clearTimeout(overall)
    },
  }
}
