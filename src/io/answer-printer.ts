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
  let received = ''
  let isInLine = false

  /** With `isWhole: false`, a carriage return or half a surrogate pair at the end waits for further text. */
  async function print(isWhole: boolean): Promise<void> {
    const length = received.length - (!isWhole && /[\r\ud800-\udbff]$/.test(received) ? 1 : 0)
    const text = received.slice(0, length)
    received = received.slice(length)
    if (text === '') return
    isInLine = !text.endsWith('\n')
    await output.write(output.isTerminal ? escapeControls(text.replaceAll('\r\n', '\n')) : text)
  }

  return {
    add(text) {
      received += text
    },
    write: () => print(false),
    async end() {
      await print(true)
      if (isInLine) await output.write('\n')
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
