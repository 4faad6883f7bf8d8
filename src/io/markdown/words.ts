/** The longest word that is kept back, in characters: what is longer is printed in pieces. */
const longestWord = 2000

export interface Words {
  push(text: string): void
  /** The line has ended. */
  end(): void
}

/**
 * Cuts a line into what may be moved to the next one: words, and the characters of scripts that have no blanks. `take`
 * also gets whether a blank was before it.
 */
export function createWords(take: (word: string, isSpaced: boolean) => void): Words {
  let word = ''
  let last = ''
  let isSpaced = false

  function flush(): void {
    if (word === '') return
    take(word, isSpaced)
    word = ''
    isSpaced = false
  }

  return {
    push(text) {
      for (const char of text) {
        if (char === ' ' || char === '\t') {
          flush()
          isSpaced = true
          continue
        }
        if (word.length >= longestWord || (word !== '' && mayBreak(last, char))) flush()
        word += char
        last = char
      }
    },
    end() {
      // It says that the line ends here, which it does anyway.
      if (word.endsWith('\\') && !word.endsWith('\\\\')) word = word.slice(0, -1)
      flush()
      isSpaced = false
    },
  }
}

/** Between Chinese or Japanese characters, but not before what closes, nor after what opens or marks. */
function mayBreak(before: string, after: string): boolean {
  if (!isWide(before) && !isWide(after)) return false
  return !/[\p{Pe}\p{Pf}\p{Po}\p{M}\u30fc\u3005\u200d]/u.test(after) && !isBound(before)
}

/** Kana, ideographs and their punctuation. */
const isWide = (char: string) => {
  const code = char.codePointAt(0) ?? 0
  return (
    (code >= 0x2e80 && code <= 0x30ff) ||
    (code >= 0x3400 && code <= 0x9fff) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xff01 && code <= 0xff60) ||
    (code >= 0x20000 && code <= 0x3ffff)
  )
}

/** What belongs to the character after it: opening brackets, and all ASCII but letters and digits. */
const isBound = (char: string) => /[\p{Ps}\p{Pi}!-/:-@[-`{-~]/u.test(char)
