import { usage } from '../errors.ts'
import { DigestMap } from './digest-map.ts'
import type { Id } from './line-form.ts'

interface Entered {
  hash: string
  isDone: boolean
  isGone: boolean
}

/** Which requests and ids the input has, and which of them an earlier run's results have: 64 bytes a line. */
export interface Ledger {
  /** Takes up a line of the results; the last one of a hash counts. */
  recall(result: { id?: Id; hash: string; index?: number; isOk: boolean; isGone?: boolean }): void
  /**
   * Enters a line of the input. Returns its hash, with `#2`, `#3` if it comes again, whether its result is there, and whether
   * only what that names is gone. Throws a usage error if its id was used before, or belongs to another request.
   */
  enter(line: { id?: Id; hash: string; index: number }): Entered
  /** How many of the results belong to no line that was entered. */
  readonly unmatched: number
  /** How many lines that are done had another number then. */
  readonly moved: number
}

/**
 * An entry has four flags in its lowest bits. In those above is a part of the hash of an id, or of a hash the number of its
 * line in the results, and once it is entered its count.
 */
const [ok, recalled, entered, gone] = [1, 2, 4, 8]
const restShift = 4

const restOf = (entry: number) => entry >>> restShift
const toEntry = (rest: number, flags: number) => ((rest << restShift) | flags) >>> 0

/** Maps of texts would take five times the memory, at the peak of 100,000 lines 40 MiB more. */
export function createLedger(): Ledger {
  const hashes = new DigestMap()
  const ids = new DigestMap()
  let known = 0
  let met = 0
  let moved = 0

  function enterId(id: Id, hash: string): void {
    ids.update(String(id), (entry) => {
      if (entry & entered) throw usage(`its id ${show(id)} was used before`)
      if (entry & recalled && restOf(entry) !== partOf(hash))
        throw usage(`its id ${show(id)} is in the results with another request`)
      return toEntry(partOf(hash), (entry & recalled) | entered)
    })
  }

  return {
    recall({ id, hash, index = 0, isOk, isGone }) {
      hashes.update(hash, (entry) => {
        if (!(entry & recalled)) known++
        return toEntry(index, recalled | (isOk ? ok : 0) | (isGone ? gone : 0))
      })
      if (id !== undefined) ids.update(String(id), () => toEntry(partOf(withoutCount(hash)), recalled))
    },
    enter({ id, hash: base, index }) {
      let found = 0
      const first = hashes.update(base, (entry) => {
        found = entry
        const count = entry & entered ? restOf(entry) + 1 : 1
        return toEntry(count, (entry & (ok | recalled | gone)) | entered)
      })
      const count = restOf(first)
      const hash = count === 1 ? base : `${base}#${count}`
      const entry = count === 1 ? found : hashes.get(hash)
      const isDone = (entry & ok) !== 0
      if (entry & recalled) met++
      const before = restOf(entry)
      if (isDone && before > 0 && before !== restOf(toEntry(index, 0))) moved++
      if (id !== undefined) enterId(id, base)
      return { hash, isDone, isGone: (entry & gone) !== 0 }
    },
    get unmatched() {
      return known - met
    },
    get moved() {
      return moved
    },
  }
}

/** The hash of the request itself: which of several equal ones it is changes with the lines around it. */
const withoutCount = (hash: string): string => hash.split('#', 1)[0] ?? hash

/** As much of a hash as has room beside an id: two different ones share it once in 2^28. */
function partOf(hash: string): number {
  let part = 0
  for (let place = 0; place < hash.length; place++) part = (Math.imul(part, 31) + hash.charCodeAt(place)) | 0
  return part & 0x0fffffff
}

const show = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
