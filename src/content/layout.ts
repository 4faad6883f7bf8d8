import type { Context } from '../context.ts'
import type { AnswerPrinter } from '../io/answer-printer.ts'
import type { Waiting } from '../io/spinner.ts'
import { takesHyperlinks, wantsColour } from '../io/style.ts'

export const loadMarkdown = () => import('../io/markdown/printer.ts')

/** Makes what lays out one text in Markdown on stdout; `waiting` shows that a block is not whole yet. */
export async function createLayout(
  { flags, host, output }: Context,
  waiting?: Waiting,
): Promise<AnswerPrinter> {
  const { MarkdownPrinter } = await loadMarkdown()
  const isColoured = wantsColour(flags.color ?? 'auto', host.env, output.isTerminal)
  const links = isColoured && output.isTerminal && takesHyperlinks(host.env) ? 'hyperlink' : 'address'
  const columns = () => host.stdout.columns || Infinity
  return new MarkdownPrinter(output, { columns, isColoured, links, waiting })
}
