import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The build copies the file next to the program. */
const readHints = () => readFileSync(join(import.meta.dirname, 'hints.txt'), 'utf8').split('\n')

/**
 * Returns the hint for a flag or command of another tool or of an earlier version of parley. Each line of
 * `hints.txt` has names, then the hint. The hint for a flag must be true for every command, unless the line
 * names the command.
 */
export function findUnknownNameHint(name: string): string | undefined {
  const rows = readHints().map((line) => /^(.*?): (.*)$/.exec(line) ?? [])
  return rows.find(([, names = '']) => names.split(', ').includes(name))?.[2]
}

/** Returns true if parley or another tool has this long flag, or a longer flag that begins with its words. */
export const isKnownFlag = (flag: string, longFlags: readonly string[]): boolean =>
  findUnknownNameHint(flag) !== undefined || longFlags.some((long) => `${long}-`.startsWith(`${flag}-`))
