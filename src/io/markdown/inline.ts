import type { MarkedToken, Token, Tokens } from 'marked'
import { getText, type Span, type StyledLine, styles } from '../spans.ts'
import { decodeReferences } from './references.ts'

/** Form of a link's address: as text after the link, or as a hyperlink of the terminal. */
export type LinkStyle = 'address' | 'hyperlink'

/**
 * Returns the lines of a paragraph, heading or cell without surrounding blanks. `sgr` applies to every span.
 */
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

export function trimEnd(line: StyledLine): StyledLine {
  const last = line.at(-1)
  if (last === undefined || last.text === last.text.trimEnd()) return line
  const text = last.text.trimEnd()
  return text === '' ? trimEnd(line.slice(0, -1)) : [...line.slice(0, -1), { ...last, text }]
}

function readSpans(tokens: readonly Token[], sgr: string, links: LinkStyle): Span[] {
  return (tokens as readonly MarkedToken[]).flatMap((token, index): Span[] => {
    switch (token.type) {
      case 'strong':
        return readSpans(token.tokens, join(sgr, styles.bold), links)
      case 'em':
        return readSpans(token.tokens, join(sgr, styles.italic), links)
      case 'del':
        if (token.raw.startsWith('~~')) return readSpans(token.tokens, join(sgr, styles.strike), links)
        // A single tilde more often means "about" than strikethrough, so the tildes are printed.
        return [{ text: '~', sgr }, ...readSpans(token.tokens, sgr, links), { text: '~', sgr }]
      case 'codespan':
        return [{ text: token.text, sgr: join(sgr, styles.code) }]
      case 'link':
      case 'image':
        return readLink(token, readSpans(token.tokens, sgr, links), sgr, links)
      case 'br':
        return [{ text: '\n', sgr }]
      case 'escape':
        return [{ text: token.text, sgr }]
      case 'text':
        return token.tokens
          ? readSpans(token.tokens, sgr, links)
          : [{ text: decodeReferences(token.raw), sgr }]
      case 'html':
        if (!/^<br\s*\/?>$/i.test(token.raw)) return [{ text: token.raw, sgr }]
        // The source also ends the line here, so one line break is enough.
        return tokens[index + 1]?.raw.startsWith('\n') ? [] : [{ text: '\n', sgr }]
      default:
        return [{ text: token.raw, sgr }]
    }
  })
}

const join = (sgr: string, added: string): string => (sgr === '' ? added : `${sgr};${added}`)

function readLink(token: Tokens.Link | Tokens.Image, spans: Span[], sgr: string, links: LinkStyle): Span[] {
  const { title } = token
  const href = decodeReferences(token.href)
  const raw = decodeReferences(token.raw)
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

/** Returns whether a terminal may get the address as a hyperlink. */
const isSafe = (address: string) => /^(?:https?:\/\/|mailto:)[!-~]+$/.test(address)

/** Characters that look like a dot, a slash or an at sign, or that a resolver reads as one. */
const dots = /[。．｡․﹒︒۔܁܂꘎ꓸ·•・]/gu
const slashes = /[／∕⁄]/gu
const ats = /[＠﹫]/gu

/** Returns whether a link's text looks like an address other than the link's own. */
function isMisleading(text: string, href: string): boolean {
  const plain = text.replace(dots, '.').replace(slashes, '/').replace(ats, '@')
  const visible = plain.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu, '')
  // A combining mark changes an address, but the address still looks the same, so marks are ignored.
  if (!/\.[\p{L}\p{N}]{2}|\/\s*\/|@/u.test(visible.replace(/\p{M}/gu, ''))) return false
  const shown = shorten(visible)
  const target = shorten(href)
  return !(target === shown || (target.startsWith(shown) && /[/?#]/.test(target[shown.length] ?? '')))
}

/** Returns an address without the parts that people leave out, such as `https://`. */
const shorten = (address: string) =>
  address
    .replace(/^(?:https?:\/\/|mailto:)/i, '')
    .replace(/\/$/, '')
    .toLowerCase()
