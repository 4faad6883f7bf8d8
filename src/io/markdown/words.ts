/** The longest word that is kept back, in characters: what is longer is printed in pieces. */
const longestWord = 2000

/** Cuts a line where it may be wrapped: into words, and the characters of scripts that have no blanks. */
export class Words {
  readonly #take: (word: string, isSpaced: boolean) => void
  #word = ''
  #last = ''
  #isSpaced = false

  /** `take` gets each word, and whether a blank was before it. */
  constructor(take: (word: string, isSpaced: boolean) => void) {
    this.#take = take
  }

  push(text: string): void {
    for (const char of text) {
      if (char === ' ' || char === '\t') {
        this.#flush()
        this.#isSpaced = true
        continue
      }
      if (this.#word.length >= longestWord || mayBreak(this.#last, char)) this.#flush()
      this.#word += char
      this.#last = char
    }
  }

  /** The line has ended. */
  end(): void {
    this.#flush()
    this.#isSpaced = false
  }

  #flush(): void {
    if (this.#word === '') return
    this.#take(this.#word, this.#isSpaced)
    this.#word = ''
    this.#isSpaced = false
  }
}

/** Between Chinese or Japanese characters, but not before a closing mark, nor after an opening one or one of Markdown. */
function mayBreak(before: string, after: string): boolean {
  if (!isWide(before) && !isWide(after)) return false
  return !/[\p{Pe}\p{Pf}\p{Po}\p{M}\u30fc\u3005\u200d]/u.test(after) && !isBound(before)
}

/** Kana, ideographs and their punctuation. */
export const isWide = (char: string) => {
  const code = char.codePointAt(0) ?? 0
  return (
    (code >= 0x2e80 && code <= 0x30ff) ||
    (code >= 0x3400 && code <= 0x9fff) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xff01 && code <= 0xff60) ||
    (code >= 0x20000 && code <= 0x3ffff)
  )
}

/** Whether it belongs to the character after it: opening brackets, and ASCII but letters and digits. */
const isBound = (char: string) => /[\p{Ps}\p{Pi}!-/:-@[-`{-~]/u.test(char)
