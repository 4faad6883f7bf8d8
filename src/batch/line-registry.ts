import { hash as digest } from 'node:crypto'
import { usageError } from '../errors.ts'
import type { BatchLineId } from './line-form.ts'

/**
 * Values in `#requests` for a request that only the results contain. They are negative, because the value of
 * a request in the input is the number of its lines.
 */
const [ok, failed] = [-1, -2]

/**
 * Value in `#ids` for the id of an input line. An id that only the results contain has the fingerprint of its
 * request.
 */
const inInput = -1

/**
 * Finds finished lines and duplicates in the input and the results of earlier runs. Keys are fingerprints,
 * because 100,000 hashes and ids would take much more memory.
 */
export class BatchLineRegistry {
  readonly #requests = new Map<number, number>()
  readonly #ids = new Map<number, number>()

  /** Of several results with the same hash, the last one counts. */
  addResult({ id, hash, isOk }: { id?: BatchLineId; hash: string; isOk: boolean }): void {
    this.#requests.set(getHashFingerprint(hash), isOk ? ok : failed)
    // The suffix of a duplicate (`#2`) changes if equal lines before it are added or removed. So the id is
    // stored with the hash without the suffix.
    if (id !== undefined) this.#ids.set(getIdFingerprint(id), getHashFingerprint(hash.replace(/#.*/s, '')))
  }

  /**
   * Adds an input line. Returns its hash, which ends with `#2`, `#3` for a duplicate, and whether an earlier
   * run has finished it. Throws a usage error if an earlier input line has the same id, or if the results
   * contain this id with another request.
   */
  addLine({ id, hash: base }: { id?: BatchLineId; hash: string }): { hash: string; isDone: boolean } {
    const request = getHashFingerprint(base)
    const entry = this.#requests.get(request) ?? 0
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

  countRequestsNotInInput(): number {
    return [...this.#requests.values()].filter((entry) => entry < 0).length
  }

  #addId(id: BatchLineId, request: number): void {
    const fingerprint = getIdFingerprint(id)
    const entry = this.#ids.get(fingerprint)
    if (entry === inInput) throw usageError(`its id ${formatId(id)} is also the id of an earlier line`)
    if (entry !== undefined && entry !== request)
      throw usageError(
        `its id ${formatId(id)} is in the results, but for another request: use another id or another results file`,
      )
    this.#ids.set(fingerprint, inInput)
  }
}

/**
 * Returns 52 bits of a digest. The probability that two of 100,000 digests have the same fingerprint is 1 in
 * 900,000.
 */
const getFingerprint = (hex: string): number => Number.parseInt(hex.slice(0, 13), 16)

/** A hash with a suffix (`#2`), or a hash that a user has edited, is not a digest, so it is hashed first. */
const getHashFingerprint = (hash: string): number =>
  getFingerprint(/^[0-9a-f]{32}$/.test(hash) ? hash : digest('sha256', hash))

/** JSON escapes lone surrogates, which would otherwise all become the same bytes of UTF-8. */
const getIdFingerprint = (id: BatchLineId): number =>
  getFingerprint(digest('sha256', JSON.stringify(String(id))))

const formatId = (id: BatchLineId) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
