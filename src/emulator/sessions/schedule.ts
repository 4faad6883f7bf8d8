/** Things that are done one after the other, each a moment later. */
export interface Schedule {
  /** How many are still to be done, with the one that is being done. */
  readonly length: number
  add(...actions: (() => void)[]): void
  /** Drops all but the next. */
  cut(): void
}

/** Makes a schedule with so many milliseconds before each thing. */
export function createSchedule(delay: number): Schedule {
  let queue: (() => void)[] = []

  function next(): void {
    const step = () => {
      queue[0]?.()
      queue.shift()
      if (queue.length > 0) next()
    }
    if (delay > 0) setTimeout(step, delay)
    else setImmediate(step)
  }

  return {
    get length() {
      return queue.length
    },
    add(...actions) {
      const isResting = queue.length === 0
      queue.push(...actions)
      if (isResting && queue.length > 0) next()
    },
    cut() {
      queue = queue.slice(0, 1)
    },
  }
}
