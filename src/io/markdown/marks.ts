import { isLetter } from './address.ts'
import { isWide } from './words.ts'

/** A run of one mark, such as `**`. */
export interface Run {
  mark: string
  mayOpen: boolean
  mayClose: boolean
  /** Whether its partner is in the same word, and which of the two it is. */
  role?: 'begin' | 'end'
}

export type Kind = 'bold' | 'italic' | 'strike'

/** What a mark means. */
export const kindsOf = (mark: string): readonly Kind[] => kinds.get(mark) ?? []

const kinds = new Map<string, readonly Kind[]>([
  ['*', ['italic']],
  ['_', ['italic']],
  ['**', ['bold']],
  ['__', ['bold']],
  ['***', ['bold', 'italic']],
  ['___', ['bold', 'italic']],
  ['~~', ['strike']],
])

/** More careful than Markdown, as answers have `2**10`, `f(*args)` and globs in their text. */
export function readRun(word: string, at: number, before: string): Run & { end: number } {
  let end = at + 1
  while (word[end] === word[at]) end++
  const mark = word.slice(at, end)
  const isKnown = kinds.has(mark)
  return {
    end,
    mark,
    mayOpen: isKnown && isBeginning(mark, word, at, before) && isBegun(word[end] ?? ' '),
    mayClose: isKnown && isEnding(mark, word[at - 1] ?? before, word.slice(end, end + 2)),
  }
}

/** The most brackets, quotes and other marks between the beginning of a word and a mark that opens. */
const mostBefore = 8

/** After a letter only where words have no blanks; after other marks only at the beginning of a word. */
function isBeginning(mark: string, word: string, at: number, before: string): boolean {
  let from = at
  while (from > 0 && at - from < mostBefore && '([{"\'<>*_~|-:'.includes(word[from - 1] as string)) from--
  const prev = word[from - 1] ?? before
  if (isBlank(prev)) return true
  return prev > '\x7f' && (!isLetter(prev) || (mark[0] !== '_' && isWide(prev)))
}

const isBegun = (after: string) => !isBlank(after) && !'.,;:?)]}|=/>'.includes(after)

function isEnding(mark: string, before: string, rest: string): boolean {
  const after = rest[0] ?? ' '
  if (isBlank(before) || '/([{'.includes(before)) return false
  if (mark[0] === '_') return !isLetter(after)
  if (after === '.') return !isLetter(rest[1] ?? ' ')
  return !/\w/.test(after) || (mark.length > 1 && !/\d/.test(after) && isLetter(before))
}

const isBlank = (char: string) => /\s/.test(char)

/** Gives the marks of a word that have their partner in it their roles; `undefined` is text. */
export function pair(runs: readonly (Run | undefined)[]): void {
  const open = new Map<string, number>()
  let lastText = -1
  for (const [at, run] of runs.entries()) {
    if (!run) {
      lastText = at
      continue
    }
    const begin = open.get(run.mark) ?? Infinity
    if (run.mayClose && begin < lastText) {
      ;(runs[begin] as Run).role = 'begin'
      run.role = 'end'
      // What began inside does not end outside.
      for (const [mark, from] of open) if (from >= begin) open.delete(mark)
    } else if (run.mayOpen) open.set(run.mark, at)
  }
}
