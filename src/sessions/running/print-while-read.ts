import { OutputClosed } from '../../errors.ts'
import type { Output } from '../../io/output.ts'

/** A reader of stdout that goes away ends the printing, not the work. */
export function printWhileRead(output: Output): Output {
  let isRead = true
  const attempt = async (act: () => Promise<void>) => {
    if (!isRead) return
    await act().catch((error) => {
      if (!(error instanceof OutputClosed)) throw error
      isRead = false
    })
  }
  return {
    isTerminal: output.isTerminal,
    write: (chunk) => attempt(() => output.write(chunk)),
    flush: () => attempt(() => output.flush()),
  }
}
