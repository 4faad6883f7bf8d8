import type { StdStream } from './output.ts'

/** On a narrower terminal, the terminal itself wraps lines. */
const minColumns = 20

/**
 * Matches a command in quotes, or a command up to the end of the message. Wrapping must not break a command,
 * because people copy it.
 */
const command = /'parley .*?'(?=[).,:;]*(?: |$))|(?<=^| )parley .*$/g

const keptBlank = '\ue000'

/**
 * Returns a function that wraps a message for a terminal. In a pipe the message stays unchanged. Continuation
 * lines are indented by two columns more than the first line, so a reader cannot mistake them for a new
 * message. If the message begins in column `start`, its continuation lines begin in that column, too.
 */
export async function createLineWrapper(stream: StdStream, start = 0): Promise<(message: string) => string> {
  if (!stream.isTerminal) return String
  const { measureWidth, getText, wrapLine } = await import('./spans.ts')
  const toLine = (text: string) => [{ text, sgr: '' }]
  const wrapMessageLine = (line: string) => {
    const columns = (stream.columns ?? 0) - start
    if (columns < minColumns || measureWidth(toLine(line)) <= columns) return line
    const [margin = ''] = /^ */.exec(line) ?? []
    const text = line.slice(margin.length).replace(command, (found) => found.replaceAll(' ', keptBlank))
    const added = start === 0 ? 2 : 0
    const rows = wrapLine(toLine(text), columns - margin.length - added)
    const indent = margin + ' '.repeat(start + added)
    return margin + rows.map((row) => getText(row).replaceAll(keptBlank, ' ')).join(`\n${indent}`)
  }
  return (message) => message.split('\n').map(wrapMessageLine).join('\n')
}
