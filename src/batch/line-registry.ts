import { hash as digest } from 'node:crypto'
import { usageError } from '../errors.ts'
import type { BatchLineId } from './parsed-line.ts'

/**
 * Values in `#requests` for a successful or failed request that is only in the results. For a request of the
 * input, the value is the number of input lines with this request.
 */
const [ok, failed] = [-1, -2]

/**
 * Value in `#ids` for an id of the input. An id that is only in the results has a positive value, which
 * `toEntry` computes from its request.
 */
const inInput = -1

/** Finds finished lines and duplicates in the input and the results of earlier runs. */
export class BatchLineRegistry {
  #requests = new FingerprintMap()
  #ids = new FingerprintMap()

  /** Of several results with the same hash, the last one counts. */
  addResult({ id, hash, isOk }: { id?: BatchLineId; hash: string; isOk: boolean }): void {
    this.#requests.set(getHashFingerprint(hash), isOk ? ok : failed)
    // The suffix of a duplicate (`#2`) changes if equal lines before it are added or removed. So the id is
    // stored with the hash without the suffix.
    if (id !== undefined)
      this.#ids.set(getIdFingerprint(id), toEntry(getHashFingerprint(hash.replace(/#.*/s, ''))))
  }

  /**
   * Adds an input line. Returns its hash, which ends with `#2`, `#3` for a duplicate, and whether an earlier
   * run has finished the line. Throws a usage error if an earlier input line, or another request in the
   * results, has the same id.
   */
  addLine({ id, hash: base }: { id?: BatchLineId; hash: string }): { hash: string; isDone: boolean } {
    const request = getHashFingerprint(base)
    const entry = this.#requests.get(request)
    const count = Math.max(entry, 0) + 1
    this.#requests.set(request, count)
    if (id !== undefined) this.#addId(id, request)
    if (count === 1) return { hash: base, isDone: entry === ok }
    const hash = `${base}#${count}`
    const numbered = getHashFingerprint(hash)
    const isDone = this.#requests.get(numbered) === ok
    this.#requests.set(numbered, 1)
    return { hash, isDone }
  }

  /**
   * Ends the input and returns the number of requests that only the results contain. Frees the tables, which
   * would otherwise keep 6 MiB while parley requests 100,000 lines.
   */
  endInput(): number {
    const count = this.#requests.countNegative()
    this.#requests = new FingerprintMap()
    this.#ids = new FingerprintMap()
    return count
  }

  #addId(id: BatchLineId, request: number): void {
    const fingerprint = getIdFingerprint(id)
    const entry = this.#ids.get(fingerprint)
    if (entry === inInput) throw usageError(`its id ${formatId(id)} is also the id of an earlier line`)
    if (entry !== 0 && entry !== toEntry(request))
      throw usageError(
        `its id ${formatId(id)} is in the results, but for another request: use another id or another results file`,
      )
    this.#ids.set(fingerprint, inInput)
  }
}

/**
 * Returns a value for `#ids`: 30 bits of the request's fingerprint, plus 1, because 0 means that the id is
 * unknown.
 */
const toEntry = (request: number) => (request % 2 ** 30) + 1

/**
 * Hash table with at most 32 bytes per entry. A `Map` needs more than twice as much memory. The value of an
 * unknown fingerprint is 0.
 */
class FingerprintMap {
  #keys = new Float64Array(512)
  #values = new Int32Array(512)
  #count = 0

  get(key: number): number {
    return this.#values[this.#findSlot(key)] as number
  }

  set(key: number, value: number): void {
    const slot = this.#findSlot(key)
    if (this.#values[slot] === 0) this.#count++
    this.#keys[slot] = key
    this.#values[slot] = value
    if (this.#count > this.#keys.length * 0.75) this.#grow()
  }

  countNegative(): number {
    return this.#values.reduce((count, value) => (value < 0 ? count + 1 : count), 0)
  }

  #findSlot(key: number): number {
    let slot = key % this.#keys.length
    while (this.#values[slot] !== 0 && this.#keys[slot] !== key) slot = (slot + 1) % this.#keys.length
    return slot
  }

  #grow(): void {
    const [keys, values] = [this.#keys, this.#values]
    this.#keys = new Float64Array(keys.length * 2)
    this.#values = new Int32Array(keys.length * 2)
    this.#count = 0
    keys.forEach((key, slot) => {
      if (values[slot]) this.set(key, values[slot])
    })
  }
}

/**
 * Returns 52 bits of a digest. The probability that two of 100,000 digests have the same fingerprint is 1 in
 * 900,000.
 */
const getFingerprint = (hex: string): number => Number.parseInt(hex.slice(0, 13), 16)

/** A hash with a suffix (`#2`), or edited by a user, is not a digest, so it is hashed first. */
const getHashFingerprint = (hash: string): number =>
  getFingerprint(/^[0-9a-f]{32}$/.test(hash) ? hash : digest('sha256', hash))

/** JSON escapes lone surrogates, which would otherwise all become the same bytes of UTF-8. */
const getIdFingerprint = (id: BatchLineId): number =>
  getFingerprint(digest('sha256', JSON.stringify(String(id))))

const formatId = (id: BatchLineId) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
