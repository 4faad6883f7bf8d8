import type { Context } from '../../context.ts'

export interface Progress {
  /** The task was accepted, or there is none. */
  isBegun: boolean
}

/** A context whose calls, when they are interrupted, say how to go on with what was begun. */
export const tellingWay = (context: Context, progress: Progress, way: string): Context => ({
  ...context,
  whenInterrupted: (describe) =>
    context.whenInterrupted(() =>
      progress.isBegun ? [describe() ?? [], way].flat().join('; ') : describe(),
    ),
})
