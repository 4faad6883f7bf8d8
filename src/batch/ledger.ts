import { hash as digest } from 'node:crypto'
import { usageError } from '../errors.ts'
import type { Id } from './line-form.ts'

/**
 * Records the requests and ids of the input and of earlier results. Fingerprints as keys take about 150
 * bytes for each line; maps of strings would take three times the memory.
 */
export class Ledger {
  /** By request: its last result, or as soon as the input has the request, the number of its lines. */
  readonly #requests = new Map<number, 'ok' | 'failed' | number>()
  /** By id: the request of its last result, or `input` as soon as the input has the id. */
  readonly #ids = new Map<number, number | 'input'>()

  /** Adds a line of the results. If several lines have the same hash, the last one counts. */
  addResult({ id, hash, isOk }: { id?: Id; hash: string; isOk: boolean }): void {
    this.#requests.set(getFingerprint(hash), isOk ? 'ok' : 'failed')
    if (id !== undefined) this.#ids.set(getFingerprint(String(id)), getFingerprint(hash.replace(/#.*/s, '')))
  }

  /**
   * Adds a line of the input. Throws a usage error if its id was used before, or belongs to another request.
   * Returns the hash with `#2`, `#3` for duplicates.
   */
  addLine({ id, hash: base }: { id?: Id; hash: string }): { hash: string; isDone: boolean } {
    const request = getFingerprint(base)
    const entry = this.#requests.get(request)
    const count = typeof entry === 'number' ? entry + 1 : 1
    this.#requests.set(request, count)
    if (id !== undefined) this.#addId(id, request)
    if (count === 1) return { hash: base, isDone: entry === 'ok' }
    const hash = `${base}#${count}`
    const duplicate = getFingerprint(hash)
    const isDone = this.#requests.get(duplicate) === 'ok'
    this.#requests.delete(duplicate)
    return { hash, isDone }
  }

  /** Counts the requests in the results that the input does not have so far. */
  countOtherRequests(): number {
    let others = 0
    for (const entry of this.#requests.values()) if (typeof entry === 'string') others++
    return others
  }

  #addId(id: Id, request: number): void {
    const key = getFingerprint(String(id))
    const entry = this.#ids.get(key)
    if (entry === 'input') throw usageError(`its id ${formatId(id)} was used before`)
    if (entry !== undefined && entry !== request)
      throw usageError(`its id ${formatId(id)} is in the results with another request`)
    this.#ids.set(key, 'input')
  }
}

/** Returns 52 bits of the text's digest. Among 100,000 texts, two are equal with a probability of 1 to 900,000. */
function getFingerprint(text: string): number {
  // JSON escapes lone surrogates. UTF-8 would encode all lone surrogates as the same bytes.
  return Number.parseInt(digest('sha256', JSON.stringify(text)).slice(0, 13), 16)
}

const formatId = (id: Id) => JSON.stringify(typeof id === 'string' ? id.slice(0, 100) : id)
