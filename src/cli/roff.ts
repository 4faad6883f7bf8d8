/** What roff would take for its own, or print as another character. */
const escapes: Record<string, string> = {
  '\\': '\\(rs',
  '-': '\\-',
  "'": '\\(aq',
  '"': '\\(dq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
}

const codePoint = (char: string) => char.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')

/** A text that roff prints as it is, at the start of a line and in the argument of a macro too. */
export const escapeRoff = (text: string): string =>
  text
    .replace(/[\\\-'"`^~]/g, (char) => escapes[char] ?? char)
    .replace(/[^\x00-\x7f]/gu, (char) => `\\[u${codePoint(char)}]`)
    .replace(/^\./gm, '\\&.')

/** A heading, and what is under it. */
export const section = (title: string, ...parts: string[]): string =>
  under(`.SH "${escapeRoff(title.toUpperCase())}"`, parts)

export const subsection = (title: string, ...parts: string[]): string =>
  under(`.SS "${escapeRoff(title)}"`, parts)

/** A heading begins a paragraph already. */
const under = (heading: string, parts: string[]) =>
  [heading, ...parts.filter((part) => part !== '')].join('\n').replace('\n.PP\n', '\n')

/** Terms, each with what it is about. */
export const definitions = (rows: [term: string, about: string][]): string =>
  rows.map(([term, about]) => `.TP\n\\fB${escapeRoff(term)}\\fR\n${escapeRoff(about)}`).join('\n')

/** Where a paragraph's lines begin, on a screen of 80 columns. */
const [margin, width] = [7, 80]

/** Lines that are printed as they are, such as commands: to the right of the text, if there is room. */
export function literal(lines: readonly string[]): string {
  const indent = Math.min(4, width - margin - Math.max(...lines.map((line) => line.length)))
  return `.RS ${indent}\n.nf\n${lines.map(escapeRoff).join('\n')}\n.fi\n.RE`
}

/** Paragraphs, between them indented lines that are printed as they are, and headings (`## `). */
export function prose(text: string): string {
  const parts: { isLiteral: boolean; lines: string[] }[] = []
  for (const line of text.split('\n')) {
    const isLiteral = /^\s/.test(line)
    const last = parts.at(-1)
    if (last && line !== '' && last.isLiteral === isLiteral) last.lines.push(line)
    else parts.push({ isLiteral, lines: line === '' ? [] : [line] })
  }
  const shown = parts.filter(({ lines }) => lines.length > 0)
  return shown
    .map(({ isLiteral, lines }) => (isLiteral ? literal(withoutIndent(lines)) : paragraph(lines)))
    .join('\n')
}

function withoutIndent(lines: string[]): string[] {
  const indent = Math.min(...lines.map((line) => line.search(/\S/)))
  return lines.map((line) => line.slice(indent))
}

function paragraph(lines: string[]): string {
  const [heading = ''] = lines
  if (heading.startsWith('## ')) return subsection(heading.slice(3))
  return ['.PP', ...lines.map(escapeRoff)].join('\n')
}
