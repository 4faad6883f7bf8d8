/**
 * Returns the value of a flag, even if other arguments are invalid. The value is a separate word or
 * attached to the flag. If the flag is repeated, the last value counts. Words after `--` are not flags.
 */
export function findFlagValue(argv: string[], flag: string): string | undefined {
  const words = beforeEnd(argv)
  const index = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`))
  if (words[index] !== flag) return words[index]?.slice(flag.length + 1)
  const value = words[index + 1]
  return value !== undefined && mustBeAttached(value) ? undefined : value
}

/** A negative number may be a separate word, because no flag begins with a digit. */
export const mustBeAttached = (value: string): boolean => /^-(?!\.?\d)./s.test(value)

export const hasFlag = (argv: string[], flag: string): boolean => beforeEnd(argv).includes(flag)

const beforeEnd = (argv: string[]) => (argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv)
