import { usageError } from '../errors.ts'
import { DigestMap } from './digest-map.ts'
import type { Id } from './line-form.ts'

/**
 * The lowest bits of an entry are four flags. The upper bits count the lines with this hash, or hold a part
 * of an id's hash.
 */
const [ok, inResults, inInput, gone] = [1, 2, 4, 8]
const flagBits = 4

const getUpperBits = (entry: number) => entry >>> flagBits
const toEntry = (rest: number, flags: number) => ((rest << flagBits) | flags) >>> 0

/**
 * Records the requests and ids of the input and of earlier results in 64 bytes for each line. Maps of strings
 * would take five times the memory: 40 MiB more for 100,000 lines.
 */
export class Ledger {
  readonly #hashes = new DigestMap()
  readonly #ids = new DigestMap()

  /** Number of requests in the results that the input does not have so far. */
  otherRequests = 0

  /** Adds a line of the results. If several lines have the same hash, the last one counts. */
  addResult({ id, hash, isOk, isGone }: { id?: Id; hash: string; isOk: boolean; isGone?: boolean }): void {
    this.#hashes.update(hash, (entry) => {
      if (entry === 0) this.otherRequests++
      return inResults | (isOk ? ok : 0) | (isGone ? gone : 0)
    })
    if (id !== undefined)
      this.#ids.update(String(id), () => toEntry(getHashPart(withoutCount(hash)), inResults))
  }

  /**
   * Adds a line of the input. Throws a usage error if its id was used before, or belongs to another request.
   * Returns the hash with `#2`, `#3` for duplicates. `isGone` marks a finished line whose files are missing.
   */
  addLine({ id, hash: base }: { id?: Id; hash: string }) {
    const first = this.#hashes.update(base, (entry) =>
      toEntry(getUpperBits(entry) + 1, entry & (ok | inResults | gone)),
    )
    const count = getUpperBits(first)
    const hash = count === 1 ? base : `${base}#${count}`
    const entry = count === 1 ? first : this.#hashes.get(hash)
    if (entry & inResults) this.otherRequests--
    if (id !== undefined) this.#enterId(id, base)
    return { hash, isDone: (entry & ok) !== 0, isGone: (entry & gone) !== 0 }
  }

  #enterId(id: Id, hash: string): void {
    this.#ids.update(String(id), (entry) => {
      if (entry & inInput) throw usageError(`its id ${formatId(id)} was used before`)
      if (entry & inResults && getUpperBits(entry) !== getHashPart(hash))
        throw usageError(`its id ${formatId(id)} is in the results with another request`)
      return toEntry(getHashPart(hash), (entry & inResults) | inInput)
    })
  }
}

/**
 * Returns the hash of the request itself, because the number of a duplicate depends on the lines around it.
 */
const withoutCount = (hash: string): string => hash.split('#', 1)[0] ?? hash

/** Returns the part of a hash that fits next to an id: two hashes share it once in 2^28. */
function getHashPart(hash: string): number {
  let part = 0
  for (let place = 0; place < hash.length; place++) part = (Math.imul(part, 31) + hash.charCodeAt(place)) | 0
  return part & 0x0fffffff
}

const formatId = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
