import { hash as digest } from 'node:crypto'
import { usageError } from '../errors.ts'
import type { LineId } from './line-form.ts'

/**
 * State of a request that only an earlier run had: `ok` or `failed`. When an input line has the same request,
 * the state is replaced by a positive value: the number of input lines with this request.
 */
const [ok, failed] = [-1, -2]

/**
 * State of an id that an input line has. An id that only earlier results have has a positive value: a part of
 * the fingerprint of its request.
 */
const inInput = -1

/** Finds finished lines and duplicates in the input and the results of earlier runs. */
export class LineLedger {
  readonly #requests = new FingerprintMap()
  readonly #ids = new FingerprintMap()

  /** If several results have the same hash, the last one counts. */
  addResult({ id, hash, isOk }: { id?: LineId; hash: string; isOk: boolean }): void {
    this.#requests.set(getHashFingerprint(hash), isOk ? ok : failed)
    // The number of a duplicate (`#2`) depends on the other lines. The id is stored with the hash without that
    // number, so that it matches after lines were added or removed.
    if (id !== undefined)
      this.#ids.set(getFingerprint(String(id)), toEntry(getHashFingerprint(hash.replace(/#.*/s, ''))))
  }

  /**
   * Adds an input line. Returns its hash, which ends with `#2`, `#3` for a duplicate, and whether an earlier
   * run has finished it. Throws a usage error if an earlier input line has the same id, or if the results
   * contain this id with another request.
   */
  addLine({ id, hash: base }: { id?: LineId; hash: string }): { hash: string; isDone: boolean } {
    const request = getHashFingerprint(base)
    const entry = this.#requests.get(request)
    const count = Math.max(entry, 0) + 1
    this.#requests.set(request, count)
    if (id !== undefined) this.#addId(id, request)
    if (count === 1) return { hash: base, isDone: entry === ok }
    const hash = `${base}#${count}`
    const numbered = getFingerprint(hash)
    const isDone = this.#requests.get(numbered) === ok
    this.#requests.set(numbered, 1)
    return { hash, isDone }
  }

  countOtherRequests(): number {
    return this.#requests.countNegative()
  }

  #addId(id: LineId, request: number): void {
    const fingerprint = getFingerprint(String(id))
    const entry = this.#ids.get(fingerprint)
    if (entry === inInput) throw usageError(`its id ${formatId(id)} is also the id of an earlier line`)
    if (entry !== 0 && entry !== toEntry(request))
      throw usageError(`its id ${formatId(id)} is in the results, but for another request`)
    this.#ids.set(fingerprint, inInput)
  }
}

/** Returns 30 bits of a request's fingerprint, increased by 1 to differ from 0 (unknown). */
const toEntry = (request: number) => (request % 2 ** 30) + 1

/**
 * Hash table with at most 32 bytes per entry. A `Map` takes 70, so a batch of 100,000 lines with ids would
 * take 30 MiB more. 0 means that a fingerprint is unknown.
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
 * Returns 52 bits of a digest. The probability that two of 100,000 texts have the same fingerprint is 1 in
 * 900,000.
 */
function getFingerprint(text: string, hex?: string): number {
  // JSON escapes lone surrogates. Without JSON, all lone surrogates would become the same UTF-8 bytes and the
  // same fingerprint.
  return Number.parseInt((hex ?? digest('sha256', JSON.stringify(text))).slice(0, 13), 16)
}

/** A hash without a number is a digest already, so it needs no further hashing. */
const getHashFingerprint = (hash: string): number =>
  getFingerprint(hash, /^[0-9a-f]{32}$/.test(hash) ? hash : undefined)

const formatId = (id: LineId) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
