import type { Context } from '../../context.ts'
import { describeResume } from '../../io/failure.ts'

export interface Progress {
  /** The task was accepted, or there is none. */
  isBegun: boolean
}

/** A context whose calls, when they are interrupted, say how to go on with what was begun. */
export const tellingWay = (context: Context, progress: Progress, resume: string[]): Context => ({
  ...context,
  whenInterrupted: (describe) =>
    context.whenInterrupted(() =>
      progress.isBegun
        ? [describe() ?? [], describeResume(resume).join('\n  ')].flat().join('; ')
        : describe(),
    ),
})
