import { hash } from 'node:crypto'

type Digest = readonly [number, number, number]

/** Three words of the text's digest and its number; a number of 0 marks a free slot. */
const slotWords = 4
const firstSlots = 512
const fullest = 0.75
const growth = 1.5

/** Maps texts to numbers from 1 to 2^32 - 1 without storing the texts. Takes at most 32 bytes per text. */
export class DigestMap {
  #words = new Uint32Array(firstSlots * slotWords)
  #count = 0

  /** Size of the table. */
  get bytes(): number {
    return this.#words.byteLength
  }

  /** Returns the number of a text, or 0 for an unknown text. */
  get(text: string): number {
    return this.#words[findSlot(this.#words, computeDigest(text)) + 3] as number
  }

  /** Replaces the number of a text; a new text has the number 0. Returns the new number. */
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

/** Computes 96 bits, so that nobody can construct two texts with the same digest. */
function computeDigest(text: string): Digest {
  // JSON escapes lone surrogates. UTF-8 would encode all lone surrogates as the same bytes.
  const digest = hash('sha256', JSON.stringify(text))
  const wordAt = (place: number) => Number.parseInt(digest.slice(place, place + 8), 16)
  return [wordAt(0), wordAt(8), wordAt(16)]
}

/** Returns the slot of the digest, or a free slot if the digest is unknown. */
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
