import type { Call, Prepare } from './jobs.ts'
import type { Ask } from './sender.ts'

/** What one line of a batch does. */
export interface LineWork<C extends Call> {
  prepare: Prepare<C>
  ask: Ask<C>
  /** What an answer took, found in a result that was written with `--raw`. */
  tokensOf(line: Record<string, unknown>): number | undefined
  /** Prints the request in one line. */
  preview(call: C): Promise<void>
}
