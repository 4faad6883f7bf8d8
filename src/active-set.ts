/**
 * A set for short-lived members. A `Set` keeps removed members in old hash tables, which V8 collects late
 * (src/README.md).
 */
export class ActiveSet<T> {
  readonly #all: T[] = []

  add(one: T): void {
    if (!this.has(one)) this.#all.push(one)
  }

  has(one: T): boolean {
    return this.#all.includes(one)
  }

  /** Returns whether the set contained the member. */
  delete(one: T): boolean {
    const place = this.#all.indexOf(one)
    if (place >= 0) this.#all.splice(place, 1)
    return place >= 0
  }

  *[Symbol.iterator](): Generator<T> {
    for (const one of [...this.#all]) if (this.has(one)) yield one
  }
}
