import type { Context } from '../../context.ts'
import { usage } from '../../errors.ts'
import type { AnswerPrinter } from '../../io/answer-printer.ts'
import { takesHyperlinks, wantsColour } from '../../io/style.ts'
import type { Settings } from '../../settings/schemas.ts'

export interface Layout {
  load(): Promise<unknown>
  createPrinter(): Promise<AnswerPrinter>
}

/** How an answer's Markdown is laid out; `undefined` where the text is printed as it is. */
export function chooseLayout(
  { flags, host, output }: Context,
  options: { markdown?: boolean; output?: string },
  { markdown }: Settings,
): Layout | undefined {
  const isFile = options.output !== undefined && options.output !== '-'
  if (options.markdown && flags.raw) throw usage('--markdown lays out text: it does not go with --raw')
  if (options.markdown && isFile)
    throw usage('--markdown is for what is printed: it does not go with -o FILE')
  const isWanted = options.markdown ?? (markdown && output.isTerminal)
  if (!isWanted || flags.raw || isFile) return undefined
  return {
    load: loadPrinter,
    async createPrinter() {
      const { createMarkdownPrinter } = await loadPrinter()
      const isColoured = wantsColour(flags.color ?? 'auto', host.env, output.isTerminal)
      const links = isColoured && output.isTerminal && takesHyperlinks(host.env) ? 'hyperlink' : 'address'
      return createMarkdownPrinter(output, { columns: host.stdout.columns, isColoured, links })
    },
  }
}

const loadPrinter = () => import('../../io/markdown/printer.ts')
