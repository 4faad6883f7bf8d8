import { hash as digest } from 'node:crypto'
import { usageError } from '../errors.ts'
import type { Id } from './line-form.ts'

/**
 * Entries for requests with a result of an earlier run. A positive entry is the number of input lines with
 * the request.
 */
const [ok, failed] = [-1, -2]

/**
 * Entry for an id of the input. A positive entry is a part of the fingerprint of the request that has the id
 * in the results.
 */
const inInput = -1

/** Records the requests and ids of the input and of earlier results. */
export class Ledger {
  readonly #requests = new FingerprintMap()
  readonly #ids = new FingerprintMap()

  /** Adds a line of the results. If several lines have the same hash, the last one counts. */
  addResult({ id, hash, isOk }: { id?: Id; hash: string; isOk: boolean }): void {
    this.#requests.set(getFingerprint(hash), isOk ? ok : failed)
    // The number of a duplicate depends on the lines around it, so the id is stored with the hash without
    // that number.
    if (id !== undefined)
      this.#ids.set(getFingerprint(String(id)), toEntry(getFingerprint(hash.replace(/#.*/s, ''))))
  }

  /**
   * Adds a line of the input. Throws a usage error if its id was used before, or belongs to another request.
   * Returns the hash with `#2`, `#3` for duplicates.
   */
  addLine({ id, hash: base }: { id?: Id; hash: string }): { hash: string; isDone: boolean } {
    const request = getFingerprint(base)
    const entry = this.#requests.get(request)
    const count = Math.max(entry, 0) + 1
    this.#requests.set(request, count)
    if (id !== undefined) this.#addId(id, request)
    if (count === 1) return { hash: base, isDone: entry === ok }
    const hash = `${base}#${count}`
    const isDone = this.#requests.get(getFingerprint(hash)) === ok
    this.#requests.set(getFingerprint(hash), 1)
    return { hash, isDone }
  }

  /** Counts the requests of the results that no input line has had so far. */
  countOtherRequests(): number {
    return this.#requests.countNegative()
  }

  #addId(id: Id, request: number): void {
    const key = getFingerprint(String(id))
    const entry = this.#ids.get(key)
    if (entry === inInput) throw usageError(`its id ${formatId(id)} was used before`)
    if (entry !== 0 && entry !== toEntry(request))
      throw usageError(`its id ${formatId(id)} is in the results with another request`)
    this.#ids.set(key, inInput)
  }
}

/** Returns 30 bits of a request's fingerprint, as a positive number. */
const toEntry = (request: number) => (request % 2 ** 30) + 1

/**
 * Maps fingerprints to numbers other than 0 in at most 32 bytes for each. A `Map` needs 70, and a batch of
 * 100,000 lines with ids then takes 30 MiB more.
 */
class FingerprintMap {
  #keys = new Float64Array(512)
  #values = new Int32Array(512)
  #count = 0

  /** Returns 0 for an unknown fingerprint. */
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

  /** Returns the index of the fingerprint in the hash table, or the free index at which to add it. */
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
    for (const [slot, key] of keys.entries()) if (values[slot]) this.set(key, values[slot] as number)
  }
}

/**
 * Returns 52 bits of the text's digest. Among 100,000 texts, two have the same fingerprint with a probability
 * of 1 in 900,000.
 */
function getFingerprint(text: string): number {
  // JSON escapes lone surrogates. UTF-8 would encode all lone surrogates as the same bytes.
  return Number.parseInt(digest('sha256', JSON.stringify(text)).slice(0, 13), 16)
}

const formatId = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
