/** Puts results that finish in any order into the order in which their lines were begun. */
export interface Window {
  /** Another line may be begun. */
  readonly hasRoom: boolean
  /** A line is begun. Returns its place. */
  open(): number
  /** A line's result is there. Returns the results whose turn it is now. */
  finish(place: number, result: string): string[]
  /** The results that wait for one before them. They are given out by this. */
  takeHeld(): string[]
}

/** Fewer than `size` results wait at any time. */
export function createWindow(size: number): Window {
  const held = new Map<number, string>()
  let opened = 0
  let next = 0
  return {
    get hasRoom() {
      return opened - next < size
    },
    open: () => opened++,
    finish(place, result) {
      held.set(place, result)
      const ready: string[] = []
      for (let first = held.get(next); first !== undefined; first = held.get(next)) {
        held.delete(next++)
        ready.push(first)
      }
      return ready
    },
    takeHeld() {
      const places = [...held.keys()].sort((one, other) => one - other)
      const results = places.map((place) => held.get(place) as string)
      held.clear()
      return results
    },
  }
}

/** Gives each result out at once. */
export const createOpenWindow = (): Window => ({
  hasRoom: true,
  open: () => 0,
  finish: (_, result) => [result],
  takeHeld: () => [],
})
