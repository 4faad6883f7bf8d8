import type { AnswerPrinter } from '../answer-printer.ts'
import { escapeControls } from '../escape.ts'
import type { Output } from '../output.ts'
import { paint } from '../spans.ts'
import type { Waiting } from '../spinner.ts'
import { Blocks } from './blocks.ts'
import type { LinkStyle } from './inline.ts'

export interface MarkdownOptions {
  /** The width of the terminal, which may change. */
  columns?: () => number
  isColoured: boolean
  links?: LinkStyle
  /** Shows that a block is not whole yet. */
  waiting?: Waiting | undefined
}

/**
 * Prints Markdown block by block, laid out for a terminal, and never moves or repeats what was printed. Control
 * characters are made visible first, also in a pipe.
 */
export function createMarkdownPrinter(
  output: Output,
  { columns = () => Infinity, isColoured, links = 'address', waiting }: MarkdownOptions,
): AnswerPrinter {
  let page = ''
  const blocks = new Blocks({
    columns,
    links,
    print(line) {
      page += `${paint(line, isColoured)}\n`
    },
  })
  let pending = ''

  /** What was added, but for half a character or half a line break at its end. */
  function read(isEnd: boolean): void {
    const text = pending
    const end = isEnd || !/[\r\ud800-\udbff]$/.test(text) ? text.length : text.length - 1
    pending = text.slice(end)
    blocks.push(escapeControls(text.slice(0, end).replaceAll('\r\n', '\n')))
  }

  async function print(): Promise<void> {
    const text = page
    page = ''
    if (text !== '') await output.write(text)
  }

  return {
    add(text) {
      pending += text
    },
    async write() {
      read(false)
      await print()
      if (blocks.keepsText) waiting?.show('waiting for the rest')
    },
    async end() {
      read(true)
      blocks.end()
      await print()
      await output.flush()
    },
    breakLine() {
      read(true)
      blocks.cut()
      const isBroken = page !== '' && output.isTerminal
      print().catch(() => {})
      return isBroken
    },
  }
}
