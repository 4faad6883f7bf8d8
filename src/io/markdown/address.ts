import { looks } from './paint.ts'

/** A piece of a word: where it ends, what is shown for it, and its look if not that of the text around it. */
export interface Step {
  end: number
  text: string
  look?: string
}

/** Reads the address after a link's text, with its brackets. A title after it is in words of its own. */
export function readTarget(word: string, at: number): Step {
  let depth = 0
  let end = at + 1
  do {
    if (word[end] === '(') depth++
    if (word[end] === ')') depth--
    end++
  } while (depth > 0 && end < word.length)
  return { end, text: word.slice(at, end), look: looks.address }
}

const inBrackets = /<[a-z][a-z0-9+.-]{1,31}:[^\s<>]*>/iy
/** Others are rather a type such as `<std::string>`. */
const isWeb = (address: string) => /^<(https?:\/\/|mailto:)./i.test(address)
const bare = /https?:\/\/[^\s<>`*"']*/y

export function readAddress(word: string, at: number, before: string): Step | undefined {
  if (word[at] === '<') {
    inBrackets.lastIndex = at
    const address = isLetter(word[at + 1] ?? '') ? inBrackets.exec(word)?.[0] : undefined
    if (address === undefined) return undefined
    const end = at + address.length
    return isWeb(address) ? { end, text: address.slice(1, -1), look: looks.address } : { end, text: address }
  }
  if (!word.startsWith('http', at) || isLetter(before)) return undefined
  bare.lastIndex = at
  const address = bare.exec(word)?.[0]
  if (address === undefined) return undefined
  let end = at + address.length
  while (/[.,;:!?)\]}_~|]/.test(word[end - 1] as string)) end--
  return { end, text: word.slice(at, end), look: looks.address }
}

export const isLetter = (char: string) => /[\p{L}\p{N}]/u.test(char)
