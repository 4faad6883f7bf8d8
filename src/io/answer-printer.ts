import { getTextStart } from '../wire/text-start.ts'
import { escapeControls } from './escape.ts'
import type { Output, StdStream } from './output.ts'
import type { Spinner } from './spinner.ts'
import { usesColour } from './style.ts'

interface AnswerPrinter {
  /** Adds a piece of the answer, which may end inside a line break or a surrogate pair. */
  add(text: string): void
  write(): Promise<void>
  end(): Promise<void>
  /**
   * Ends an unfinished line or block of Markdown, so that a message on stderr begins on a new line. Returns
   * true if a line was ended on a terminal. Synchronous, because signal handlers call it.
   */
  breakLine(): boolean
}

const maxWriteLength = 256 * 1024

interface AnswerLayout {
  host: { stdout: StdStream; env: Readonly<Record<string, string | undefined>> }
  flags: { color?: string }
  output: Output
}

export const loadMarkdownPrinter = () => import('./markdown/printer.ts')

export async function createAnswerPrinter(
  { flags, host, output }: AnswerLayout,
  options: { isMarkdown: boolean; waiting?: Spinner },
): Promise<AnswerPrinter> {
  const { isMarkdown, waiting } = options
  if (!isMarkdown) return createTextPrinter(output)
  const isColoured = usesColour(flags.color, host.env, output.isTerminal)
  const columns = () => host.stdout.columns || Infinity
  return new (await loadMarkdownPrinter()).MarkdownPrinter(output, {
    columns,
    isColoured,
    waiting,
  })
}

function createTextPrinter(output: Output): AnswerPrinter {
  /**
   * Line breaks, or half a surrogate pair, at the end of the received text. parley prints them only before
   * further text, so an answer never ends with empty lines.
   */
  let heldBack = ''
  let pending = ''
  let hasText = false
  let isInLine = false

  return {
    add(text) {
      if (text === '') return
      const end = findPrintableEnd(text)
      const isMoreBreaks = end === 0 && isLineBreak(text[0]) && !endsInHalfCharacter(heldBack)
      if (!isMoreBreaks) {
        pending += heldBack
        heldBack = ''
      }
      pending += text.slice(0, end)
      heldBack += text.slice(end)
    },
    async write() {
      if (pending === '') return
      const text = output.isTerminal ? escapeControls(pending.replaceAll('\r\n', '\n')) : pending
      pending = ''
      hasText = true
      isInLine = !text.endsWith('\n')
      // Writes pieces, because encoding the whole text at once would double its memory.
      for (let start = 0; start < text.length; ) {
        const next = getTextStart(text.slice(start, start + maxWriteLength + 1), maxWriteLength)
        await output.write(next)
        start += next.length
      }
    },
    async end() {
      if (endsInHalfCharacter(heldBack)) pending += heldBack
      heldBack = ''
      await this.write()
      if (hasText) await output.write('\n')
      isInLine = false
      await output.flush()
    },
    breakLine() {
      const isBroken = isInLine
      isInLine = false
      if (isBroken) output.write('\n').catch(() => {})
      return isBroken && output.isTerminal
    },
  }
}

function findPrintableEnd(text: string): number {
  let end = text.length
  while (isLineBreak(text[end - 1])) end--
  return end === text.length && endsInHalfCharacter(text) ? end - 1 : end
}

const isLineBreak = (char: string | undefined): boolean => char === '\n' || char === '\r'

const endsInHalfCharacter = (text: string): boolean => /[\ud800-\udbff]/.test(text.slice(-1))
