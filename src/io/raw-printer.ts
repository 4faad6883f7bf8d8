import { escapeControlsInJson } from './escape.ts'
import type { Output } from './output.ts'

/** Each write is expensive, so short texts are joined up to this number of UTF-16 units. */
const maxJoinedLength = 64 * 1024

interface PrinterOptions {
  /** Escapes control characters on a terminal. By default, they become JSON escapes. */
  escapeText?(text: string): string
  /** If true, an unfinished last line gets a line end. Default: true on a terminal. */
  endsLine?: boolean
  /** Lays out the escaped text, also in a pipe. `end` completes the last line. */
  layout?: { add(text: string): void; end(): void; takeText(): string }
}

/** Prints chunks as they arrive. A text may end inside a line break or a surrogate pair. */
export function createRawPrinter(
  output: Output,
  { escapeText = escapeControlsInJson, endsLine = output.isTerminal, layout }: PrinterOptions = {},
) {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let pending: (Uint8Array | string)[] = []
  let isInLine = false

  async function print(chunks: (Uint8Array | string)[]): Promise<void> {
    for (const chunk of chunks) {
      const isText = typeof chunk === 'string' || !output.isTerminal
      const text = isText ? chunk : decoder.decode(chunk, { stream: true })
      layout?.add(escapeText(text as string))
      const shown = layout?.takeText() ?? (output.isTerminal ? escapeText(text as string) : text)
      if (shown.length === 0) continue
      isInLine = endsLine && typeof shown === 'string' && !shown.endsWith('\n')
      await output.write(shown)
    }
  }

  function takeEnd(): string {
    layout?.end()
    const end = layout?.takeText() ?? (isInLine ? '\n' : '')
    isInLine = false
    return end
  }

  return {
    add(chunk: Uint8Array | string): void {
      const last = pending.at(-1)
      if (typeof chunk !== 'string' || typeof last !== 'string' || last.length > maxJoinedLength)
        pending.push(chunk)
      else pending[pending.length - 1] = last + chunk
    },
    /** Holds back a carriage return or half a surrogate pair at the end until more text arrives. */
    async write(): Promise<void> {
      const chunks = pending
      const last = chunks.at(-1)
      pending = []
      if (typeof last === 'string' && /[\r\ud800-\udbff]/.test(last.slice(-1))) {
        chunks[chunks.length - 1] = last.slice(0, -1)
        pending = [last.slice(-1)]
      }
      await print(chunks)
    },
    async end(): Promise<void> {
      await print(pending.splice(0))
      const end = takeEnd()
      if (end !== '') await output.write(end)
      await output.flush()
    },
    /**
     * Ends an unfinished line, so that a message on stderr begins on a new line. Returns true if a line was
     * ended on a terminal. Synchronous, because signal handlers call it.
     */
    breakLine(): boolean {
      const end = takeEnd()
      if (end !== '') output.write(end).catch(() => {})
      return end !== '' && output.isTerminal
    },
  }
}

export async function printRawBytes(output: Output, bytes: Uint8Array): Promise<void> {
  const printer = createRawPrinter(output)
  printer.add(bytes)
  await printer.end()
}
