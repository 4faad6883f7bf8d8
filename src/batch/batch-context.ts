import type { Context } from '../context.ts'
import { createStatusLine, type StatusLine } from '../io/status-line.ts'

/** A context whose messages come above a status line. */
export interface BatchContext extends Context {
  status: StatusLine
}

export function createBatchContext(context: Context): BatchContext {
  const status = createStatusLine(context.host.stderr)
  const above = (say: (line: string) => void) => (line: string) => status.above(() => say(line))
  const { note, warn, tell } = context
  return { ...context, status, note: above(note), warn: above(warn), tell: above(tell) }
}
