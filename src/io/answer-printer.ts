import type { BasicContext } from '../basic-context.ts'
import { escapeControls } from './escape.ts'
import type { Output } from './output.ts'
import { createRawPrinter } from './raw-printer.ts'
import type { Spinner } from './spinner.ts'
import { usesColour } from './style.ts'

export const loadMarkdownLayout = () => import('./markdown/layout.ts')

export async function createAnswerPrinter(
  { flags, host, output }: Pick<BasicContext, 'flags' | 'host'> & { output: Output },
  { isMarkdown, waiting }: { isMarkdown: boolean; waiting?: Pick<Spinner, 'show'> },
) {
  const escapeText = (text: string) => escapeControls(text.replaceAll('\r\n', '\n'))
  if (!isMarkdown) return createRawPrinter(output, { escapeText, endsLine: true })
  const { MarkdownLayout } = await loadMarkdownLayout()
  const layout = new MarkdownLayout({
    columns: () => host.stdout.columns || Infinity,
    isColoured: usesColour(flags.color, host.env, output.isTerminal),
  })
  const printer = createRawPrinter(output, { escapeText, layout })
  return {
    ...printer,
    async write() {
      await printer.write()
      if (layout.isTableHeld) waiting?.show('waiting for the rest of the table')
    },
  }
}
