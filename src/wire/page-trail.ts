import { notUnderstood } from './problem/not-understood.ts'

/** How many pages in a row may be empty: a service may filter its pages after it made them. */
const mostEmpty = 20

/** The pages of a list that were read so far: finds a list that does not end. */
export interface PageTrail {
  /** Throws a `CliError` where this mark of a page was there before; `why` says what that means. */
  addMark(mark: string | undefined, why: string): void
  /** Throws a `CliError` where too many pages in a row have no items. */
  addPage(items: number): void
}

export function createPageTrail(list: string): PageTrail {
  const marks = new Set<string>()
  let empty = 0
  const endless = (why: string) => notUnderstood(`${list} does not end: ${why}`)
  return {
    addMark(mark, why) {
      if (mark === undefined) return
      if (marks.has(mark)) throw endless(why)
      marks.add(mark)
    },
    addPage(items) {
      empty = items === 0 ? empty + 1 : 0
      if (empty > mostEmpty) throw endless(`${empty} pages in a row are empty`)
    },
  }
}
