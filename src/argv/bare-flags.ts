/**
 * Returns the value of a flag in arguments that may be invalid, as a separate word or attached. The last one
 * counts. Words after `--` are not flags.
 */
export function findFlagValue(argv: string[], flag: string): string | undefined {
  const words = beforeEnd(argv)
  const index = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`))
  if (words[index] !== flag) return words[index]?.slice(flag.length + 1)
  const value = words[index + 1]
  // A value that begins with a hyphen must be attached, as in the full parser.
  return value !== undefined && /^-./.test(value) ? undefined : value
}

/** Returns whether the arguments contain a flag without a value. */
export const hasFlag = (argv: string[], flag: string): boolean => beforeEnd(argv).includes(flag)

const beforeEnd = (argv: string[]) => (argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv)
