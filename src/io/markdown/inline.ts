import type { MarkedToken, Token, Tokens } from 'marked'
import { getText, type Span, type StyledLine, styles } from '../spans.ts'

/** How the address of a link is shown: behind its text, or as the terminal's own link. */
export type LinkStyle = 'address' | 'hyperlink'

/** The lines of a paragraph, a heading or a cell, each without the blanks around it. `sgr` is what all of it has at least. */
export function readLines(tokens: readonly Token[], sgr: string, links: LinkStyle): StyledLine[] {
  const lines: Span[][] = [[]]
  for (const span of readSpans(tokens, sgr, links)) {
    for (const [index, text] of span.text.split('\n').entries()) {
      if (index > 0) lines.push([])
      const line = lines.at(-1) as Span[]
      const shown = line.length === 0 ? text.trimStart() : text
      if (shown !== '') line.push({ ...span, text: shown.replaceAll('\t', '    ') })
    }
  }
  return lines.map(trimEnd)
}

/** A line without blanks at its end. */
export function trimEnd(line: StyledLine): StyledLine {
  const last = line.at(-1)
  if (last === undefined || last.text === last.text.trimEnd()) return line
  const text = last.text.trimEnd()
  return text === '' ? trimEnd(line.slice(0, -1)) : [...line.slice(0, -1), { ...last, text }]
}

function readSpans(tokens: readonly Token[], sgr: string, links: LinkStyle): Span[] {
  return (tokens as readonly MarkedToken[]).flatMap((token): Span[] => {
    switch (token.type) {
      case 'strong':
        return readSpans(token.tokens, join(sgr, styles.bold), links)
      case 'em':
        return readSpans(token.tokens, join(sgr, styles.italic), links)
      case 'del':
        if (token.raw.startsWith('~~')) return readSpans(token.tokens, join(sgr, styles.strike), links)
        // A single tilde stands for "about" more often.
        return [{ text: '~', sgr: sgr }, ...readSpans(token.tokens, sgr, links), { text: '~', sgr: sgr }]
      case 'codespan':
        return [{ text: token.text, sgr: join(sgr, styles.code) }]
      case 'link':
      case 'image':
        return readLink(token, readSpans(token.tokens, sgr, links), sgr, links)
      case 'br':
        return [{ text: '\n', sgr: sgr }]
      case 'escape':
        return [{ text: token.text, sgr: sgr }]
      case 'text':
        // Not its `text`: there the library has decoded references such as &#27;.
        return token.tokens ? readSpans(token.tokens, sgr, links) : [{ text: token.raw, sgr: sgr }]
      default:
        return [{ text: token.raw, sgr: sgr }]
    }
  })
}

const join = (sgr: string, added: string): string => (sgr === '' ? added : `${sgr};${added}`)

function readLink(token: Tokens.Link | Tokens.Image, spans: Span[], sgr: string, links: LinkStyle): Span[] {
  const { href, raw, title } = token
  const shown = getText(spans)
  const isBare = raw === shown || raw === `<${shown}>`
  const address = { text: ` (${href}${title ? ` "${title}"` : ''})`, sgr: join(sgr, styles.address) }
  if (links === 'hyperlink' && isSafe(href) && !title) {
    const linked = spans.map((span) => ({ ...span, target: href }))
    return isBare || !isMisleading(shown, href) ? linked : [...linked, address]
  }
  if (isBare || (shown === href && !title))
    return spans.map((span) => ({ ...span, sgr: join(sgr, styles.address) }))
  return [...spans, address]
}

/** What a terminal may be told as the target of a link. */
const isSafe = (address: string) => /^(?:https?:\/\/|mailto:)[!-~]+$/.test(address)

/** Characters that look like a dot, a slash or an at sign, or that a resolver reads as one. */
const dots = /[。．｡․﹒︒۔܁܂꘎ꓸ·•・]/gu
const slashes = /[／∕⁄]/gu
const ats = /[＠﹫]/gu

/** Whether a link's text looks like an address, and the link leads to another one. */
function isMisleading(text: string, href: string): boolean {
  const plain = text.replace(dots, '.').replace(slashes, '/').replace(ats, '@')
  const visible = plain.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
  // A mark on a letter leaves an address an address, but makes it another one.
  if (!/\.[\p{L}\p{N}]{2}|\/\s*\/|@/u.test(visible.replace(/\p{M}/gu, ''))) return false
  const shown = bare(visible)
  const target = bare(href)
  return !(target === shown || (target.startsWith(shown) && /[/?#]/.test(target[shown.length] ?? '')))
}

/** An address without what people leave out. */
const bare = (address: string) =>
  address
    .replace(/^(?:https?:\/\/|mailto:)/i, '')
    .replace(/\/$/, '')
    .toLowerCase()
