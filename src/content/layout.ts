import type { Context } from '../context.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../io/answer-printer.ts'
import type { MarkdownOptions } from '../io/markdown/printer.ts'
import type { PendingSpinner } from '../io/spinner.ts'
import { wantsColour } from '../io/style.ts'

export const loadMarkdown = () => import('../io/markdown/printer.ts')

interface Layout {
  /** True if Markdown is formatted. If false, the text is printed unchanged. */
  isMarkdown: boolean
  isStreamed?: boolean
  waiting?: PendingSpinner
}

export async function createPrinter(
  { flags, host, output }: Context,
  { isMarkdown, isStreamed = false, waiting }: Layout,
): Promise<AnswerPrinter> {
  if (!isMarkdown) return createAnswerPrinter(output)
  const isColoured = wantsColour(flags.color, host.env, output.isTerminal)
  const columns = () => host.stdout.columns || Infinity
  const options: MarkdownOptions = { columns, isColoured, isStreamed, waiting }
  return new (await loadMarkdown()).MarkdownPrinter(output, options)
}
