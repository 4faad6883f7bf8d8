import type { StdStream } from '../basic-context.ts'

/** Below this width, the terminal itself wraps lines. */
const minColumns = 20

/**
 * Matches a command, which is not wrapped, because people copy it. A command in quotes may be anywhere. Any
 * other command starts the line or follows a colon, and ends with the line or before a semicolon outside of
 * quotes. Elsewhere, "parley" is only a word of a sentence.
 */
const command =
  /'parley .*?'(?=[).,:;]*(?: |$))|(?<=^|: )parley (?:api|chat|config|events|help|image|sessions) (?:\$'(?:\\.|[^\\'])*'|'[^']*'|\\.|;(?! )|[^;'\\])*/g

const keptBlank = '\ue000'

/**
 * Returns a function that wraps messages on a terminal, and leaves them unchanged in a pipe. Indents later rows
 * by `start` columns, or by two if `start` is 0, so that they do not look like new messages.
 */
export async function createLineWrapper(stream: StdStream, start = 0): Promise<(message: string) => string> {
  if (!stream.isTerminal) return String
  const { measureLineWidth, getLineText, wrapLine } = await import('./spans.ts')
  const toLine = (text: string) => [{ text, sgr: '' }]
  const wrapMessageLine = (line: string) => {
    const columns = (stream.columns ?? 0) - start
    if (columns < minColumns || measureLineWidth(toLine(line)) <= columns) return line
    const [margin = ''] = /^ */.exec(line) ?? []
    const text = line.slice(margin.length).replace(command, (found) => found.replaceAll(' ', keptBlank))
    const added = start === 0 ? 2 : 0
    const rows = wrapLine(toLine(text), columns - margin.length - added)
    const indent = margin + ' '.repeat(start + added)
    return margin + rows.map((row) => getLineText(row).replaceAll(keptBlank, ' ')).join(`\n${indent}`)
  }
  return (message) => message.split('\n').map(wrapMessageLine).join('\n')
}
