import type { Context } from '../context.ts'
import { type AnswerPrinter, createAnswerPrinter } from '../io/answer-printer.ts'
import type { PendingSpinner } from '../io/spinner.ts'
import { takesHyperlinks, wantsColour } from '../io/style.ts'

export const loadMarkdown = () => import('../io/markdown/printer.ts')

/**
 * Creates the printer of one text: unchanged, or laid out as Markdown. `waiting` is shown while a block is
 * incomplete.
 */
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
