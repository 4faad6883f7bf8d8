import { usage } from '../errors.ts'
import { createDigestMap } from './digest-map.ts'
import type { Id } from './line-form.ts'

/** Which requests and ids the input has, and which of them an earlier run's results have: 64 bytes a line. */
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

/** An entry has three flags in its lowest bits; a hash's count, or a part of the hash of an id, is in those above. */
const [ok, recalled, entered] = [1, 2, 4]
const restShift = 3

const restOf = (entry: number) => entry >>> restShift
const toEntry = (rest: number, flags: number) => ((rest << restShift) | flags) >>> 0

/** Maps of texts would take five times the memory, at the peak of 100,000 lines 40 MiB more. */
export function createLedger(): Ledger {
  const hashes = createDigestMap()
  const ids = createDigestMap()
  let known = 0
  let met = 0

  function enterId(id: Id, hash: string): void {
    ids.update(String(id), (entry) => {
      if (entry & entered) throw usage(`its id ${show(id)} was used before`)
      if (entry & recalled && restOf(entry) !== partOf(hash))
        throw usage(`its id ${show(id)} is in the results with another request`)
      return toEntry(partOf(hash), (entry & recalled) | entered)
    })
  }

  return {
    recall({ id, hash, isOk }) {
      hashes.update(hash, (entry) => {
        if (!(entry & recalled)) known++
        return toEntry(restOf(entry), recalled | (isOk ? ok : 0))
      })
      if (id !== undefined) ids.update(String(id), () => toEntry(partOf(hash), recalled))
    },
    enter({ id, hash: base }) {
      const first = hashes.update(base, (entry) =>
        toEntry(restOf(entry) + 1, (entry & (ok | recalled)) | entered),
      )
      const count = restOf(first)
      const hash = count === 1 ? base : `${base}#${count}`
      const entry = count === 1 ? first : hashes.get(hash)
      if (entry & recalled) met++
      if (id !== undefined) enterId(id, hash)
      return { hash, isDone: (entry & ok) !== 0 }
    },
    get unmatched() {
      return known - met
    },
  }
}

/** As much of a hash as has room beside an id: two different ones share it once in 2^28. */
function partOf(hash: string): number {
  let part = 0
  for (let place = 0; place < hash.length; place++) part = (Math.imul(part, 31) + hash.charCodeAt(place)) | 0
  return part & 0x0fffffff
}

const show = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
