const bare = /^[\w@%+:,./-][\w@%+=:,./-]*$/

export const plainQuote = (text: string): string =>
  bare.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** Characters that a single line would not show as they are. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+|(?! )\s| {2,}/gu

/**
 * A word as a shell reads it back, byte for byte. What matches `hidden` is written as escapes, which bash and zsh know
 * but not every sh; by default these are all characters that a single line would not show as they are.
 */
export function shellQuote(text: string, hidden: RegExp = unseen): string {
  if (text.search(hidden) < 0) return plainQuote(text)
  const octal = (found: string) =>
    [...Buffer.from(found)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${text.replace(/[\\']/g, '\\$&').replace(hidden, octal)}'`
}

/** A command; a flag's name is not quoted with its value. */
export const quoteWords = (words: readonly string[]): string =>
  words
    .map((word) => {
      const [name = ''] = /^--[a-z-]+=/.exec(word) ?? []
      return name + shellQuote(word.slice(name.length))
    })
    .join(' ')
