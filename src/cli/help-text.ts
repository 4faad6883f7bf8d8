import { Help } from 'commander'
import type { Style } from '../io/style.ts'

/** How commander's help is laid out: on a narrower screen the terminal breaks the lines. */
export const helpForm = { minWidthToWrap: 20 }

const layoutFor = (width = 80) => Object.assign(new Help(), helpForm, { helpWidth: width })

/** Breaks lines that are wider than the screen, but no indented lines: they are there to be copied. */
export function fold(text: string, width: number | undefined): string {
  const layout = layoutFor(width)
  const lines = text
    .split('\n')
    .map((line) => (/^\s/.test(line) ? line : layout.boxWrap(line, layout.helpWidth)))
  return lines.join('\n')
}

/** A topic on a screen: paragraphs that are broken anew, and headings (`## `) as the help of commands has them. */
export const layOut = (text: string, width: number | undefined, style: Style): string =>
  emboldenHeadings(
    fold(
      text
        .replace(/(?<=^\S.*)\n(?=\S)/gm, ' ')
        .replace(/^## (.*)$/gm, (_, heading: string) => style.bold(`${heading}:`)),
      width,
    ),
    style,
  )

/** Two columns; the second is wrapped. */
export function formatList(rows: [term: string, about: string][], width: number | undefined): string {
  const layout = layoutFor(width)
  const termWidth = Math.max(...rows.map(([term]) => term.length))
  return rows.map(([term, about]) => layout.formatItem(term, termWidth, about, layout)).join('\n')
}

/** `Usage: …`, and a line that is a heading alone. */
const heading = /^(Usage:|Shared flags:|[A-Z][a-z]+(?: of every command[a-z ]*)?:$)/gm

export const emboldenHeadings = (text: string, { bold }: Style): string =>
  text.replace(heading, (words) => bold(words))
