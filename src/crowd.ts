/**
 * What things enter and leave all the time. In place of a `Set`, which would keep most of them in memory after they
 * have left, because V8 keeps what stood in a table that has become too small or too large (src/README.md).
 */
export interface Crowd<T> extends Iterable<T> {
  add(one: T): void
  has(one: T): boolean
  /** Returns whether it was there. */
  delete(one: T): boolean
}

export function createCrowd<T>(): Crowd<T> {
  const all: T[] = []
  return {
    add(one) {
      if (!all.includes(one)) all.push(one)
    },
    has: (one) => all.includes(one),
    delete(one) {
      const place = all.indexOf(one)
      if (place >= 0) all.splice(place, 1)
      return place >= 0
    },
    *[Symbol.iterator]() {
      for (const one of [...all]) if (all.includes(one)) yield one
    },
  }
}
