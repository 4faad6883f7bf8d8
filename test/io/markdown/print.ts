import { type MarkdownOptions, MarkdownPrinter } from '../../../src/io/markdown/printer.ts'
import type { Output } from '../../../src/io/output.ts'

interface PrintOptions extends Partial<Omit<MarkdownOptions, 'columns'>> {
  /** A function can change the terminal's width between writes. */
  columns?: number | (() => number) | undefined
}

/** Opens a printer whose writes are collected. */
export function openPrinter({ columns = Infinity, ...options }: PrintOptions = {}) {
  const written: string[] = []
  const output: Output = {
    isTerminal: true,
    async write(text) {
      written.push(String(text))
    },
    async flush() {},
  }
  const printer = new MarkdownPrinter(output, {
    isColoured: false,
    columns: typeof columns === 'number' ? () => columns : columns,
    ...options,
  })
  return { printer, written }
}

/** Prints a text that arrives in pieces. Returns the chunks that the printer writes to the terminal. */
export async function printPieces(
  pieces: readonly string[],
  options?: PrintOptions,
  afterPiece = () => {},
): Promise<string[]> {
  const { printer, written } = openPrinter(options)
  for (const piece of pieces) {
    printer.add(piece)
    await printer.write()
    afterPiece()
  }
  await printer.end()
  return written
}

export const print = async (text: string, options?: PrintOptions) =>
  (await printPieces([text], options)).join('')

export const withoutColours = (text: string) => text.replace(/\x1b\[[\d;]*m/g, '')
