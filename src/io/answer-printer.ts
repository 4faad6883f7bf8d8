import { escapeControls } from './escape.ts'
import type { Output, StdStream } from './output.ts'
import { createRawPrinter } from './raw-printer.ts'
import type { Spinner } from './spinner.ts'
import { usesColour } from './style.ts'

interface AnswerLayout {
  host: { stdout: StdStream; env: Readonly<Record<string, string | undefined>> }
  flags: { color?: string }
  output: Output
}

export const loadMarkdownPrinter = () => import('./markdown/printer.ts')

export async function createAnswerPrinter(
  { flags, host, output }: AnswerLayout,
  options: { isMarkdown: boolean; waiting?: Spinner },
) {
  const { isMarkdown, waiting } = options
  const escapeText = (text: string) => escapeControls(text.replaceAll('\r\n', '\n'))
  if (!isMarkdown) return createRawPrinter(output, { escapeText, endsLine: true })
  const isColoured = usesColour(flags.color, host.env, output.isTerminal)
  const columns = () => host.stdout.columns || Infinity
  return new (await loadMarkdownPrinter()).MarkdownPrinter(output, {
    columns,
    isColoured,
    waiting,
  })
}
