/**
 * A list with the methods of `Set`. A `Set` keeps removed members in old hash tables, which V8 collects late,
 * so memory use would grow (src/README.md).
 */
export class ArraySet<T> {
  readonly #all: T[] = []

  add(one: T): void {
    if (!this.has(one)) this.#all.push(one)
  }

  has(one: T): boolean {
    return this.#all.includes(one)
  }

  delete(one: T): boolean {
    const index = this.#all.indexOf(one)
    if (index >= 0) this.#all.splice(index, 1)
    return index >= 0
  }

  *[Symbol.iterator](): Generator<T> {
    for (const one of [...this.#all]) if (this.has(one)) yield one
  }
}
