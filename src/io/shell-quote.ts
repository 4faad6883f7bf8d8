const safeWord = /^[\w@%+:,./-][\w@%+=:,./-]*$/

/** Works in any shell. Invisible characters stay unchanged. */
export const quoteSimple = (text: string): string =>
  safeWord.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** Invisible or ambiguous on a single line. */
const invisible = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+|(?! )\s| {2,}/gu

/**
 * A shell reads the word back byte for byte. Characters that match `hidden` become escapes, by default all
 * invisible characters. bash and zsh support these escapes, other shells may not.
 */
export function shellQuote(text: string, hidden: RegExp = invisible): string {
  if (text.search(hidden) < 0) return quoteSimple(text)
  const octal = (found: string) =>
    [...Buffer.from(found)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${text.replace(/[\\']/g, '\\$&').replace(hidden, octal)}'`
}

/** A flag's name stays outside the quotes of its value. */
export const quoteWords = (words: readonly string[]): string =>
  words
    .map((word) => {
      const [name = ''] = /^--[a-z-]+=/.exec(word) ?? []
      return name + shellQuote(word.slice(name.length))
    })
    .join(' ')
