const safeWord = /^[\w@%+:,./-][\w@%+=:,./-]*$/

/** The result works in any shell. Invisible characters stay unchanged. */
export const quoteShellWord = (text: string): string =>
  safeWord.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/**
 * Quotes a word so that a shell reads it back byte for byte. Characters that match `hidden` become escapes,
 * which bash and zsh support, but not every shell. By default, these are invisible or ambiguous characters.
 */
export function escapeShellWord(
  text: string,
  hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+|(?! )\s| {2,}/gu,
): string {
  if (text.search(hidden) < 0) return quoteShellWord(text)
  const octal = (found: string) =>
    [...Buffer.from(found)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`).join('')
  return `$'${text.replace(/[\\']/g, '\\$&').replace(hidden, octal)}'`
}

/** Quotes the words of a command. The name of a flag stays outside of the quotes: `--set='a b'`. */
export const quoteShellWords = (words: readonly string[]): string =>
  words
    .map((word) => {
      const [name = ''] = /^--[a-z-]+=/.exec(word) ?? []
      return name + escapeShellWord(word.slice(name.length))
    })
    .join(' ')
