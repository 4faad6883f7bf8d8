import { Help } from 'commander'
import type { Context } from '../context.ts'
import { writeTextToStdout } from '../io/output.ts'
import type { Style } from '../io/style.ts'

const minDescriptionColumns = 20

export const helpLayoutOptions: Partial<Help> = {
  minWidthToWrap: minDescriptionColumns,
  formatItem(term, termWidth, description, helper) {
    const { helpWidth = 80 } = helper
    if (!description || helpWidth - termWidth - 4 >= minDescriptionColumns)
      return Help.prototype.formatItem.call(helper, term, termWidth, description, helper)
    return `  ${[term, ...helper.boxWrap(description, helpWidth - 4).split('\n')].join('\n    ')}`
  },
}

const createLayout = (width = 80) => Object.assign(new Help(), helpLayoutOptions, { helpWidth: width })

/** Indented lines are not wrapped, because people copy them. */
export function wrapHelp(text: string, width: number | undefined, { bold }: Pick<Style, 'bold'>): string {
  const layout = createLayout(width)
  return text
    .split('\n')
    .map((line) => (/^\s/.test(line) ? line : layout.boxWrap(line, layout.helpWidth)))
    .join('\n')
    .replace(heading, (words) => bold(words))
}

export async function printHelp(
  context: Pick<Context, 'host' | 'cleanups'>,
  text: string,
  isPaged: boolean,
): Promise<void> {
  const { stdout } = context.host
  if (isPaged && stdout.isTerminal) {
    const { showInPager } = await import('./pager.ts')
    if (await showInPager(context, text)) return
  }
  await writeTextToStdout(stdout, text)
}

/** A row of a table in a topic. Its description may continue on indented lines. */
const tableRow = /^ {2}((?:\d+ +)?\S+)( {2,})(\S.*(?:\n {9,}\S.*)*)$/gm

export function wrapTopic(text: string, width: number | undefined, style: Pick<Style, 'bold'>): string {
  const layout = createLayout(width)
  const wrapped = text
    .replace(/(?<=^\S.*)\n(?=\S)/gm, ' ')
    .replace(/^## (.*)$/gm, (_, heading: string) => style.bold(`${heading}:`))
    .replace(tableRow, (_, term: string, gap: string, about: string) =>
      layout.formatItem(term, term.length + gap.length - 2, about.replace(/\n +/g, ' '), layout),
    )
  return wrapHelp(wrapped, width, style)
}

export function formatTwoColumns(rows: [term: string, about: string][], width: number | undefined): string {
  const layout = createLayout(width)
  const termWidth = Math.max(...rows.map(([term]) => term.length))
  return rows.map(([term, about]) => layout.formatItem(term, termWidth, about, layout)).join('\n')
}

const heading = /^(Usage:|Shared flags:|[A-Z][a-z]+(?: of every command[a-z ]*)?:$)/gm
