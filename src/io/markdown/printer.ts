import type { AnswerPrinter } from '../answer-printer.ts'
import { escapeControls } from '../escape.ts'
import type { Output } from '../output.ts'
import type { Waiting } from '../spinner.ts'
import { Blocks } from './blocks.ts'
import { Canvas } from './canvas.ts'
import type { LinkStyle } from './inline.ts'

export interface MarkdownOptions {
  /** The width of the terminal, which may change: a table that is wider is printed as it came. */
  columns?: () => number
  isColoured: boolean
  links?: LinkStyle
  /** Shows that a table is kept back. */
  waiting?: Waiting | undefined
}

/**
 * Prints Markdown as it comes, laid out for a terminal, and never moves or repeats what was printed. Control
 * characters are made visible first, also in a pipe.
 */
export function createMarkdownPrinter(
  output: Output,
  { columns = () => Infinity, isColoured, links = 'address', waiting }: MarkdownOptions,
): AnswerPrinter {
  const page = new Canvas({ columns, isColoured })
  let highlighter: typeof import('./highlighter.ts') | undefined
  const blocks = new Blocks(page, links, (language) => highlighter?.createHighlight(language))
  let pending = ''
  /** Half a character or half a line break at the end. */
  let kept = ''
  /** The last characters, which may be the beginning of a fence. */
  let tail = ''
  let isOver = false

  /** The colours of code are loaded when the first of it comes. */
  async function prepare(text: string): Promise<void> {
    const seen = tail + text
    tail = seen.slice(-2)
    if (isColoured && !highlighter && /```|~~~/.test(seen)) highlighter = await import('./highlighter.ts')
  }

  function layOut(text: string): string {
    blocks.push(escapeControls(text))
    if (isOver) blocks.end()
    return page.take()
  }

  function take(isEnd: boolean): string {
    const text = kept + pending
    pending = ''
    const end = isEnd || !/[\r\ud800-\udbff]$/.test(text) ? text.length : text.length - 1
    kept = text.slice(end)
    return text.slice(0, end).replaceAll('\r\n', '\n')
  }

  return {
    add(text) {
      pending += text
    },
    async write() {
      const text = take(false)
      await prepare(text)
      await output.write(layOut(text))
      if (blocks.isInTable) waiting?.show('waiting for the end of a table')
    },
    async end() {
      const text = take(true)
      await prepare(text)
      isOver = true
      await output.write(layOut(text))
      await output.flush()
    },
    breakLine() {
      if (isOver) return false
      isOver = true
      const rest = layOut(take(true))
      output.write(rest).catch(() => {})
      return rest !== '' && output.isTerminal
    },
    get keepsLines() {
      return blocks.isInTable
    },
  }
}
