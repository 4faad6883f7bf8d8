import { usage } from '../errors.ts'
import { createDigestMap } from './digest-map.ts'
import type { Id } from './line-form.ts'

/** Which requests and ids were met, in the input and in an earlier run's results: 64 bytes a line. */
export interface Ledger {
  /** Takes up a line of the results; the last one of a hash counts. */
  recall(result: { id?: Id; hash: string; isOk: boolean }): void
  /** The input is read from its start, maybe once more. */
  startPass(): void
  /**
   * Enters a line of the input. Returns its hash, with `#2`, `#3` where it comes again, and whether its result is
   * there. Throws a usage error where its id was used before, or belongs to another request.
   */
  enter(line: { id?: Id; hash: string }): { hash: string; isDone: boolean }
  /** How many of the results belong to no line that was entered in this pass. */
  readonly strangers: number
}

/** Of an entry's 32 bits the lowest four; a hash's count, or a part of an id's hash, is in those above. */
const ok = 1
const recalled = 2
const passShift = 2
const restShift = 4

const passOf = (entry: number) => (entry >>> passShift) & 3
const restOf = (entry: number) => entry >>> restShift
const toEntry = (rest: number, pass: number, flags: number) =>
  ((rest << restShift) | (pass << passShift) | flags) >>> 0

export function createLedger(): Ledger {
  const hashes = createDigestMap()
  const ids = createDigestMap()
  let pass = 0
  let known = 0
  let met = 0

  function enterId(id: Id, hash: string): void {
    ids.update(String(id), (entry) => {
      if (passOf(entry) === pass) throw usage(`its id ${show(id)} was used before`)
      if (entry & recalled && restOf(entry) !== partOf(hash)) {
        throw usage(`its id ${show(id)} is in the results with another request`)
      }
      return toEntry(partOf(hash), pass, entry & recalled)
    })
  }

  return {
    recall({ id, hash, isOk }) {
      hashes.update(hash, (entry) => {
        if (!(entry & recalled)) known++
        return toEntry(restOf(entry), passOf(entry), recalled | (isOk ? ok : 0))
      })
      if (id !== undefined) ids.update(String(id), () => toEntry(partOf(hash), 0, recalled))
    },
    startPass() {
      pass++
      met = 0
    },
    enter({ id, hash: base }) {
      const first = hashes.update(base, (entry) => {
        const times = passOf(entry) === pass ? restOf(entry) : 0
        return toEntry(times + 1, pass, entry & (ok | recalled))
      })
      const times = restOf(first)
      const hash = times === 1 ? base : `${base}#${times}`
      const entry = times === 1 ? first : hashes.get(hash)
      if (entry & recalled) met++
      if (id !== undefined) enterId(id, hash)
      return { hash, isDone: (entry & ok) !== 0 }
    },
    get strangers() {
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
