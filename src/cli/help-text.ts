import { Help } from 'commander'
import type { Style } from '../io/style.ts'

/** How commander's help is laid out: on a narrower screen the terminal breaks the lines. */
export const helpForm = { minWidthToWrap: 20 }

const layoutFor = (width = 80) => Object.assign(new Help(), helpForm, { helpWidth: width })

/** Breaks lines that are wider than the screen, but no indented lines: they are there to be copied. Headings are bold. */
export function layOut(text: string, width: number | undefined, { bold }: Pick<Style, 'bold'>): string {
  const layout = layoutFor(width)
  return text
    .split('\n')
    .map((line) => (/^\s/.test(line) ? line : layout.boxWrap(line, layout.helpWidth)))
    .join('\n')
    .replace(heading, (words) => bold(words))
}

/** The same for a topic: paragraphs are broken anew, and headings (`## `) are as the help of commands has them. */
export const layOutTopic = (text: string, width: number | undefined, style: Pick<Style, 'bold'>): string =>
  layOut(
    text
      .replace(/(?<=^\S.*)\n(?=\S)/gm, ' ')
      .replace(/^## (.*)$/gm, (_, heading: string) => style.bold(`${heading}:`)),
    width,
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
