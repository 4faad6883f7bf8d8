import { usageError } from '../errors.ts'
import { DigestMap } from './digest-map.ts'
import type { Id } from './line-form.ts'

/**
 * An entry has four flags in its lowest bits. Those above count the lines that have the hash, or are a part of the hash of
 * an id.
 */
const [ok, inResults, inInput, gone] = [1, 2, 4, 8]
const restShift = 4

const getUpperBits = (entry: number) => entry >>> restShift
const toEntry = (rest: number, flags: number) => ((rest << restShift) | flags) >>> 0

/**
 * Which requests and ids the input has, and which of them an earlier run's results have: 64 bytes a line. Maps of texts
 * would take five times the memory, at the peak of 100,000 lines 40 MiB more.
 */
export class Ledger {
  readonly #hashes = new DigestMap()
  readonly #ids = new DigestMap()

  /** Takes up a line of the results; the last one of a hash counts. */
  addResult({ id, hash, isOk, isGone }: { id?: Id; hash: string; isOk: boolean; isGone?: boolean }): void {
    this.#hashes.update(hash, () => inResults | (isOk ? ok : 0) | (isGone ? gone : 0))
    if (id !== undefined)
      this.#ids.update(String(id), () => toEntry(getHashPart(withoutCount(hash)), inResults))
  }

  /**
   * Enters a line of the input. Throws a usage error if its id was used before, or belongs to another request. The hash that
   * it returns has `#2`, `#3` if it comes again; of a line that is gone the files are, and it was done before.
   */
  addLine({ id, hash: base }: { id?: Id; hash: string }) {
    const first = this.#hashes.update(base, (entry) =>
      toEntry(getUpperBits(entry) + 1, entry & (ok | inResults | gone)),
    )
    const count = getUpperBits(first)
    const hash = count === 1 ? base : `${base}#${count}`
    const entry = count === 1 ? first : this.#hashes.get(hash)
    if (id !== undefined) this.#enterId(id, base)
    return { hash, isDone: (entry & ok) !== 0, isGone: (entry & gone) !== 0 }
  }

  #enterId(id: Id, hash: string): void {
    this.#ids.update(String(id), (entry) => {
      if (entry & inInput) throw usageError(`its id ${show(id)} was used before`)
      if (entry & inResults && getUpperBits(entry) !== getHashPart(hash))
        throw usageError(`its id ${show(id)} is in the results with another request`)
      return toEntry(getHashPart(hash), (entry & inResults) | inInput)
    })
  }
}

/** The hash of the request itself: which of several equal ones it is changes with the lines around it. */
const withoutCount = (hash: string): string => hash.split('#', 1)[0] ?? hash

/** As much of a hash as has room beside an id: two different ones share it once in 2^28. */
function getHashPart(hash: string): number {
  let part = 0
  for (let place = 0; place < hash.length; place++) part = (Math.imul(part, 31) + hash.charCodeAt(place)) | 0
  return part & 0x0fffffff
}

const show = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
