/**
 * The value of a flag in arguments that may be wrong, as its own word or attached; the last one counts. What follows `--`
 * is not a flag.
 */
export function flagValue(argv: string[], flag: string): string | undefined {
  const words = beforeEnd(argv)
  const index = words.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`))
  if (words[index] !== flag) return words[index]?.slice(flag.length + 1)
  const value = words[index + 1]
  // As everywhere, a value that begins with a hyphen must be attached.
  return value !== undefined && /^-./.test(value) ? undefined : value
}

/** Whether a flag without a value stands among them. */
export const hasFlag = (argv: string[], flag: string): boolean => beforeEnd(argv).includes(flag)

const beforeEnd = (argv: string[]) => (argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv)
