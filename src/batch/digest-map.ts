import { hash } from 'node:crypto'

type Digest = readonly [number, number, number]

/** A slot has three words of the text's digest and its number; 0 means that it is free. */
const slotWords = 4
const firstSlots = 512
const fullest = 0.75
const growth = 1.5

/** A number from 1 to 2^32 - 1 for each of many texts, which themselves are not kept: at most 32 bytes each. */
export class DigestMap {
  #words = new Uint32Array(firstSlots * slotWords)
  #count = 0

  /** The memory of the entries. */
  get bytes(): number {
    return this.#words.byteLength
  }

  /** 0 if there is none. */
  get(text: string): number {
    return this.#words[findSlot(this.#words, computeDigest(text)) + 3] as number
  }

  /** Makes a new number of the one that is there, or of 0. Returns it. */
  update(text: string, change: (value: number) => number): number {
    const digest = computeDigest(text)
    const place = findSlot(this.#words, digest)
    const before = this.#words[place + 3] as number
    const value = change(before)
    this.#words.set(digest, place)
    this.#words[place + 3] = value
    if (before === 0) this.#count++
    if (this.#count > (this.#words.length / slotWords) * fullest) this.#grow()
    return value
  }

  #grow(): void {
    const old = this.#words
    this.#words = new Uint32Array(Math.ceil((old.length / slotWords) * growth) * slotWords)
    for (let from = 0; from < old.length; from += slotWords) {
      const [first = 0, second = 0, third = 0, value = 0] = old.subarray(from, from + slotWords)
      if (value !== 0)
        this.#words.set([first, second, third, value], findSlot(this.#words, [first, second, third]))
    }
  }
}

/** 96 bits: nobody can choose two texts with the same digest. */
function computeDigest(text: string): Digest {
  // JSON escapes half a character. Read as UTF-8, each would be the same.
  const digest = hash('sha256', JSON.stringify(text))
  const wordAt = (place: number) => Number.parseInt(digest.slice(place, place + 8), 16)
  return [wordAt(0), wordAt(8), wordAt(16)]
}

/** The start of the digest's slot, or of the free one that it would take. */
function findSlot(words: Uint32Array, [first, second, third]: Digest): number {
  const slots = words.length / slotWords
  let place = (second % slots) * slotWords
  while (
    words[place + 3] !== 0 &&
    (words[place] !== first || words[place + 1] !== second || words[place + 2] !== third)
  ) {
    place = (place + slotWords) % words.length
  }
  return place
}
