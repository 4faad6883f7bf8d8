import { stripVTControlCharacters } from 'node:util'
import type { StdStream } from './output.ts'

/** On a narrower screen parley leaves the wrapping to the terminal. */
const narrowest = 20

/**
 * Returns a function that wraps a message to the terminal's width. In a pipe it changes nothing. Later lines are indented by
 * two more than the first, so that none of them looks like another message. If the message begins in column `start`, its
 * later lines begin there, too.
 */
export async function createWrapping(stream: StdStream, start = 0): Promise<(message: string) => string> {
  if (!stream.isTerminal) return String
  const { widthOf: measure } = await import('./width.ts')
  const widthOf = (text: string) => measure(stripVTControlCharacters(text))
  const wrapLine = (line: string) => {
    const columns = (stream.columns ?? 0) - start
    if (columns < narrowest || widthOf(line) <= columns) return line
    return wrap(line, { columns, widthOf, added: start === 0 ? 2 : 0 }).join(`\n${' '.repeat(start)}`)
  }
  return (message) => message.split('\n').map(wrapLine).join('\n')
}

interface Room {
  columns: number
  widthOf(text: string): number
  /** By how many blanks later lines are indented more than the first. */
  added: number
}

function wrap(message: string, { columns, widthOf, added: indentation }: Room): string[] {
  const [margin = ''] = /^ */.exec(message) ?? []
  const indent = margin + ' '.repeat(indentation)
  const lines: string[] = []
  let line = margin
  let width = margin.length
  for (const unit of unitsOf(message)) {
    const added = widthOf(unit)
    const isFirst = line === margin || line === indent
    if (!isFirst && width + 1 + added > columns) {
      lines.push(line)
      line = indent
      width = indent.length
    } else if (!isFirst) {
      line += ' '
      width++
    }
    line += unit
    width += added
  }
  return [...lines, line]
}

/** The words of a message. A command stays whole, since a person copies it. A number stays with its unit. */
function unitsOf(message: string): string[] {
  const words = message.split(' ').filter((word) => word !== '')
  const units: string[] = []
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string
    const end = isCount(words, at) ? at + 1 : endOfCommand(words, at)
    units.push(end === at ? word : words.slice(at, end + 1).join(' '))
    at = end
  }
  return units
}

const isCount = (words: readonly string[], at: number): boolean =>
  /^\d[\d,.]*$/.test(words[at] ?? '') &&
  /^[a-z]+[,;:.)]*$/.test(words[at + 1] ?? '') &&
  words[at + 1] !== 'parley'

/** The last word of the command that begins here: in quotes, or to the end of the message. If none begins, this word. */
function endOfCommand(words: readonly string[], at: number): number {
  const word = words[at] as string
  if (word === 'parley') return words.length - 1
  if (!/^[(]?'parley$/.test(word)) return at
  const end = words.findIndex((other, index) => index > at && /'[).,:;]*$/.test(other))
  return end < 0 ? at : end
}
