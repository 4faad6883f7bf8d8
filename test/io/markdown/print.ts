import type { Host } from '../../../src/basic-context.ts'
import { createAnswerPrinter } from '../../../src/io/answer-printer.ts'
import type { Output } from '../../../src/io/output.ts'

interface PrintOptions {
  /** A function can change the terminal's width between writes. */
  columns?: number | (() => number) | undefined
  isColoured?: boolean
  waiting?: { show(what: string | (() => string)): void }
}

/** Opens a printer whose writes are collected. */
export async function openPrinter({ columns = Infinity, isColoured, waiting }: PrintOptions = {}) {
  const written: string[] = []
  const output: Output = {
    isTerminal: true,
    async write(text) {
      written.push(String(text))
    },
    async flush() {},
  }
  const stdout = {
    get columns() {
      return typeof columns === 'number' ? columns : columns()
    },
  }
  const host = { stdout, env: {} } as Host
  const flags = { color: isColoured ? 'always' : 'never', settings: {}, given: [] }
  const printing = { isMarkdown: true, ...(waiting ? { waiting } : {}) }
  const printer = await createAnswerPrinter({ flags, host, output }, printing)
  return { printer, written }
}

/** Prints a text that arrives in pieces. Returns the chunks that the printer writes to the terminal. */
export async function printPieces(
  pieces: readonly string[],
  options?: PrintOptions,
  afterPiece = () => {},
): Promise<string[]> {
  const { printer, written } = await openPrinter(options)
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
