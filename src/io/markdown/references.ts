import { unsafeCharacters } from '../escape.ts'

const names =
  'amp & lt < gt > quot " apos \' nbsp \u00a0 mdash — ndash – hellip … bull • larr ← rarr → le ≤ ge ≥ ne ≠ times × deg ° copy ©'

const named = new Map(Array.from(names.matchAll(/(\S+) (.)/g), ([, name, char]) => [name, char]))

const reference = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z][A-Za-z\d]{1,8}));/g
const blank = /^[\s\u200b]$/

/**
 * Decodes references such as `&amp;` and `&#39;`. References to control characters, line breaks and unknown
 * names stay unchanged.
 */
export function decodeCharacterReferences(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(reference, (source: string, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return named.get(name) ?? source
    const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal)
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    const char = isCharacter ? String.fromCodePoint(code) : source
    const isControl =
      char.search(unsafeCharacters) >= 0 || (blank.test(char) && char !== '\u00a0' && char !== ' ')
    return isControl ? source : char
  })
}
