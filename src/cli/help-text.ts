import { type Command, Help } from 'commander'

/** On a narrower screen the terminal breaks the lines. */
export const minWidthToWrap = 20

const layoutFor = (width = 80) => Object.assign(new Help(), { helpWidth: width, minWidthToWrap })

/** Ends the help of a command with commands that run as printed. */
export function addExamples(command: Command, examples: readonly string[]): void {
  command.addHelpText('after', `\nExamples:\n${examples.map((example) => `  ${example}`).join('\n')}`)
}

/** Ends the help of a command with a paragraph. */
export function addNote(command: Command, ...sentences: string[]): void {
  command.addHelpText('after', `\n${sentences.join(' ')}`)
}

/** Breaks lines that are wider than the screen, but no indented lines: they are there to be copied. */
export function fold(text: string, width: number | undefined): string {
  const layout = layoutFor(width)
  const lines = text
    .split('\n')
    .map((line) => (/^\s/.test(line) ? line : layout.boxWrap(line, layout.helpWidth)))
  return lines.join('\n')
}

/** A topic on a screen: paragraphs that are broken anew, and headings (`## `) as the help of commands has them. */
export const layOut = (text: string, width: number | undefined): string =>
  fold(text.replace(/(?<=^\S.*)\n(?=\S)/gm, ' ').replace(/^## (.*)$/gm, '$1:'), width)

/** Two columns; the second is wrapped. */
export function formatList(rows: [term: string, about: string][], width: number | undefined): string {
  const layout = layoutFor(width)
  const termWidth = Math.max(...rows.map(([term]) => term.length))
  return rows.map(([term, about]) => layout.formatItem(term, termWidth, about, layout)).join('\n')
}
