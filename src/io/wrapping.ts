import type { StdStream } from './output.ts'

/** On a narrower screen parley leaves the wrapping to the terminal. */
const narrowest = 20

/** A command, in quotes or to the end of the message. A person copies it, so it stays whole. */
const command = /'parley .*?'(?=[).,:;]*(?: |$))|(?<=^| )parley .*$/g

/** Stands for a blank in a command. */
const joint = '\ue000'

/**
 * Returns a function that wraps a message to the terminal's width. In a pipe it changes nothing. Later lines are indented by
 * two more than the first, so that none of them looks like another message. If the message begins in column `start`, its
 * later lines begin there, too.
 */
export async function createLineWrapper(stream: StdStream, start = 0): Promise<(message: string) => string> {
  if (!stream.isTerminal) return String
  const { measureWidth, getText, wrapLine } = await import('./spans.ts')
  const toLine = (text: string) => [{ text, sgr: '' }]
  const wrapMessageLine = (line: string) => {
    const columns = (stream.columns ?? 0) - start
    if (columns < narrowest || measureWidth(toLine(line)) <= columns) return line
    const [margin = ''] = /^ */.exec(line) ?? []
    const text = line.slice(margin.length).replace(command, (found) => found.replaceAll(' ', joint))
    const added = start === 0 ? 2 : 0
    const rows = wrapLine(toLine(text), columns - margin.length - added)
    const indent = margin + ' '.repeat(start + added)
    return margin + rows.map((row) => getText(row).replaceAll(joint, ' ')).join(`\n${indent}`)
  }
  return (message) => message.split('\n').map(wrapMessageLine).join('\n')
}
