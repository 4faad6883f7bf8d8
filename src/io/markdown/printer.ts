import type { AnswerPrinter } from '../answer-printer.ts'
import { escapeControls } from '../escape.ts'
import type { Output } from '../output.ts'
import { widthOf } from '../width.ts'
import { createBlocks } from './blocks.ts'
import { createPage } from './page.ts'
import { createMeasure, createPaint } from './paint.ts'

export interface MarkdownOptions {
  /** How wide the terminal is; without, nothing is wrapped. */
  columns?: number | undefined
  isColoured: boolean
}

/**
 * Prints Markdown as it comes, laid out for a terminal. What was printed is never moved or printed again; control
 * characters are made visible before anything else is read, wherever it goes.
 */
export function createMarkdownPrinter(
  output: Output,
  { columns = Infinity, isColoured }: MarkdownOptions,
): AnswerPrinter {
  const page = createPage({ columns, paint: createPaint(isColoured), measure: createMeasure(widthOf) })
  let highlighter: typeof import('./highlighter.ts') | undefined
  const blocks = createBlocks(page, (language) => highlighter?.createHighlight(language))
  let pending = ''
  /** Half a character or a line break, and what a fence is seen by. */
  let kept = ''
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
    },
    async end() {
      const text = take(true)
      await prepare(text)
      isOver = true
      await output.write(layOut(text))
      await output.flush()
    },
    breakLine() {
      if (isOver) return
      isOver = true
      output.write(layOut(take(true))).catch(() => {})
    },
  }
}
