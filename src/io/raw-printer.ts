import { escapeJson } from './escape.ts'
import type { Output } from './output.ts'

/** Prints bytes as they came; on a terminal, control characters become JSON escapes. */
export interface RawPrinter {
  add(chunk: Uint8Array | string): void
  /** Writes what was added; resolves when there is room for more. */
  write(): Promise<void>
  /** Waits until everything is written. */
  end(): Promise<void>
}

export function createRawPrinter(output: Output): RawPrinter {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let pending: (Uint8Array | string)[] = []
  const shown = (chunk: Uint8Array | string) => {
    if (!output.isTerminal) return chunk
    return escapeJson(typeof chunk === 'string' ? chunk : decoder.decode(chunk, { stream: true }))
  }
  return {
    add(chunk) {
      pending.push(chunk)
    },
    async write() {
      const chunks = pending
      pending = []
      for (const chunk of chunks) await output.write(shown(chunk))
    },
    async end() {
      await this.write()
      await output.flush()
    },
  }
}

/** Prints a whole body; resolves when there is room for more. */
export function printRaw(output: Output, bytes: Uint8Array): Promise<void> {
  const printer = createRawPrinter(output)
  printer.add(bytes)
  return printer.write()
}
