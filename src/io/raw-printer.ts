import { escapeControlsInJson } from './escape.ts'
import type { Output } from './output.ts'

/** Each write is expensive, so short texts are joined up to this number of UTF-16 units. */
const maxJoinedLength = 64 * 1024

/** On a terminal, control characters become JSON escapes and the last line gets a line end. */
export function createRawPrinter(output: Output) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let pending: (Uint8Array | string)[] = []
  let isInLine = false
  const shown = (chunk: Uint8Array | string) => {
    if (!output.isTerminal) return chunk
    return escapeControlsInJson(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))
  }
  return {
    add(chunk: Uint8Array | string): void {
      const last = pending.at(-1)
      if (typeof chunk !== 'string' || typeof last !== 'string' || last.length > maxJoinedLength)
        pending.push(chunk)
      else pending[pending.length - 1] = last + chunk
    },
    async write(): Promise<void> {
      const chunks = pending
      pending = []
      for (const chunk of chunks) {
        const text = shown(chunk)
        if (typeof text === 'string' && text !== '') isInLine = output.isTerminal && !text.endsWith('\n')
        await output.write(text)
      }
    },
    async end(): Promise<void> {
      await this.write()
      if (isInLine) await output.write('\n')
      isInLine = false
      await output.flush()
    },
    breakLine(): boolean {
      const isBroken = isInLine
      isInLine = false
      if (isBroken) output.write('\n').catch(() => {})
      return isBroken
    },
  }
}

export async function printRawBytes(output: Output, bytes: Uint8Array): Promise<void> {
  const printer = createRawPrinter(output)
  printer.add(bytes)
  await printer.end()
}
