import { usage } from '../errors.ts'
import type { Input } from './input.ts'

/** A word right after a flag's file. */
export interface Neighbour {
  flag: string
  /** Whether the flag can be given for each of several files. */
  isRepeatable: boolean
  word: string
}

/**
 * A shell turns `-f *.md` into several names, and only the first is the flag's: the others would be sent as words.
 * Throws a usage error if the word after a flag's file is the name of a file too.
 */
export async function refuseStrayFiles(input: Input, neighbours: Neighbour[] = []): Promise<void> {
  for (const { flag, isRepeatable, word } of neighbours) {
    if (!(await input.isFile(word))) continue
    const way = isRepeatable ? `give ${flag} before each` : 'give one'
    throw usage(
      `${flag} takes one file, and '${word}' is another: ${way}; what is meant as words goes after --`,
    )
  }
}
