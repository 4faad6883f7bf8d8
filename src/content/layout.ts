import type { Context } from '../context.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../io/answer-printer.ts'
import type { PendingSpinner } from '../io/spinner.ts'
import { takesHyperlinks, wantsColour } from '../io/style.ts'

export const loadMarkdown = () => import('../io/markdown/printer.ts')

/** What prints one text, as it is or laid out as Markdown; `waiting` shows that a block is not whole yet. */
export async function createPrinter(
  { flags, host, output }: Context,
  isLaidOut: boolean,
  waiting?: PendingSpinner,
): Promise<AnswerPrinter> {
  if (!isLaidOut) return createAnswerPrinter(output)
  const { MarkdownPrinter } = await loadMarkdown()
  const isColoured = wantsColour(flags.color, host.env, output.isTerminal)
  const links = isColoured && output.isTerminal && takesHyperlinks(host.env) ? 'hyperlink' : 'address'
  const columns = () => host.stdout.columns || Infinity
  return new MarkdownPrinter(output, { columns, isColoured, links, waiting })
}
