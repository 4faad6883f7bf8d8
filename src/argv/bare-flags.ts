/** Returns the last value of a flag, even if other arguments are invalid. Words after `--` are not flags. */
export function findFlagValue(argv: string[], flag: string): string | undefined {
  const words = beforeEnd(argv)
  const index = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`))
  if (words[index] !== flag) return words[index]?.slice(flag.length + 1)
  const value = words[index + 1]
  return value !== undefined && looksLikeFlag(value) ? undefined : value
}

/** Returns true for a word that begins with a hyphen, except for a negative number. */
export const looksLikeFlag = (value: string): boolean => /^-(?!\.?\d)./s.test(value)

export const hasFlag = (argv: string[], flag: string): boolean => beforeEnd(argv).includes(flag)

const beforeEnd = (argv: string[]) => (argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv)
