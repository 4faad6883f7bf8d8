import { isUtf8 } from 'node:buffer'
import { CliError } from '../errors.ts'
import type { Output } from '../io/output.ts'
import { createRawPrinter } from '../io/raw-printer.ts'
import type { HttpResponse } from '../wire/exchange.ts'

/** Prints an answer as it comes. */
export interface Printer {
  head(answer: Pick<HttpResponse, 'status' | 'statusText' | 'headers'>): Promise<void>
  /** Throws a `CliError` of kind `file` for bytes that are no text, on a terminal. */
  body(chunk: Uint8Array): Promise<void>
  /** Ends the last line on a terminal. */
  end(): Promise<void>
}

export function createPrinter(output: Output, hasHead: boolean): Printer {
  const printer = createRawPrinter(output)
  let isFirst = true
  let isLineOpen = false
  return {
    async head({ status, statusText, headers }) {
      if (!hasHead) return
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\n`)
      printer.add(`HTTP/1.1 ${status}${statusText && ` ${statusText}`}\n${lines.join('')}\n`)
      await printer.write()
    },
    async body(chunk) {
      if (isFirst && output.isTerminal && isBinary(chunk)) {
        throw new CliError('file', 'the answer is no text: redirect stdout, or give -o FILE', { sent: 'yes' })
      }
      isFirst = false
      isLineOpen = chunk.at(-1) !== 0x0a
      printer.add(chunk)
      await printer.write()
    },
    async end() {
      if (isLineOpen && output.isTerminal) printer.add('\n')
      isLineOpen = false
      await printer.end()
    },
  }
}

/** A character may be cut at the end of a chunk. */
const isBinary = (chunk: Uint8Array): boolean =>
  chunk.includes(0) || ![0, 1, 2, 3].some((cut) => isUtf8(chunk.subarray(0, Math.max(0, chunk.length - cut))))
