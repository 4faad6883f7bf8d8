import { usage } from '../errors.ts'
import type { Id } from './line-form.ts'

/** Which requests and ids the input has, and which of them an earlier run's results have: some 200 bytes a line. */
export interface Ledger {
  /** Takes up a line of the results; the last one of a hash counts. */
  recall(result: { id?: Id; hash: string; isOk: boolean }): void
  /**
   * Enters a line of the input. Returns its hash, with `#2`, `#3` if it comes again, and whether its result is there.
   * Throws a usage error if its id was used before, or belongs to another request.
   */
  enter(line: { id?: Id; hash: string }): { hash: string; isDone: boolean }
  /** How many of the results belong to no line that was entered. */
  readonly unmatched: number
}

export function createLedger(): Ledger {
  /** Of the results that belong to no line so far, whether they are ok. */
  const results = new Map<string, boolean>()
  /** The hashes of their ids. */
  const resultIds = new Map<string, string>()
  /** How often each hash came. */
  const times = new Map<string, number>()
  const ids = new Set<string>()

  function enterId(id: Id, hash: string): void {
    const name = String(id)
    if (ids.has(name)) throw usage(`its id ${show(id)} was used before`)
    if ((resultIds.get(name) ?? hash) !== hash)
      throw usage(`its id ${show(id)} is in the results with another request`)
    ids.add(name)
    resultIds.delete(name)
  }

  return {
    recall({ id, hash, isOk }) {
      results.set(hash, isOk)
      if (id !== undefined) resultIds.set(String(id), hash)
    },
    enter({ id, hash: base }) {
      const count = (times.get(base) ?? 0) + 1
      times.set(base, count)
      const hash = count === 1 ? base : `${base}#${count}`
      const isDone = results.get(hash) ?? false
      results.delete(hash)
      if (id !== undefined) enterId(id, hash)
      return { hash, isDone }
    },
    get unmatched() {
      return results.size
    },
  }
}

const show = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
