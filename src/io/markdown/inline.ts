import type { MarkedToken, Token, Tokens } from 'marked'
import { unsafeCharacters } from '../escape.ts'
import { getLineText, type Span, type StyledLine, spanStyles } from '../spans.ts'

export function layOutInlineTokens(tokens: readonly Token[], sgr: string): StyledLine[] {
  const lines: Span[][] = [[]]
  for (const span of readSpans(tokens, sgr)) {
    for (const [index, text] of span.text.split('\n').entries()) {
      if (index > 0) lines.push([])
      const line = lines.at(-1) as Span[]
      const shown = line.length === 0 ? text.trimStart() : text
      if (shown !== '') line.push({ ...span, text: shown.replaceAll('\t', '    ') })
    }
  }
  return lines.map(trimLineEnd)
}

export function trimLineEnd(line: StyledLine): StyledLine {
  const last = line.at(-1)
  if (last === undefined || last.text === last.text.trimEnd()) return line
  const text = last.text.trimEnd()
  return text === '' ? trimLineEnd(line.slice(0, -1)) : [...line.slice(0, -1), { ...last, text }]
}

function readSpans(tokens: readonly Token[], sgr: string): Span[] {
  return (tokens as readonly MarkedToken[]).flatMap((token, index): Span[] => {
    switch (token.type) {
      case 'strong':
        return readSpans(token.tokens, join(sgr, spanStyles.bold))
      case 'em':
        return readSpans(token.tokens, join(sgr, spanStyles.italic))
      case 'del':
        if (token.raw.startsWith('~~')) return readSpans(token.tokens, join(sgr, spanStyles.strike))
        // A single tilde more often means "about" than strikethrough, so the tildes are printed.
        return [{ text: '~', sgr }, ...readSpans(token.tokens, sgr), { text: '~', sgr }]
      case 'codespan':
        return [{ text: token.text, sgr: join(sgr, spanStyles.code) }]
      case 'link':
      case 'image':
        return readLink(token, readSpans(token.tokens, sgr), sgr)
      case 'br':
        return [{ text: '\n', sgr }]
      case 'escape':
        return [{ text: token.text, sgr }]
      case 'text':
        return token.tokens
          ? readSpans(token.tokens, sgr)
          : [{ text: decodeCharacterReferences(token.raw), sgr }]
      case 'html':
        if (!/^<br\s*\/?>$/i.test(token.raw)) return [{ text: token.raw, sgr }]
        // A line break of the source follows, so <br> adds no second line break.
        return tokens[index + 1]?.raw.startsWith('\n') ? [] : [{ text: '\n', sgr }]
      default:
        return [{ text: token.raw, sgr }]
    }
  })
}

const join = (sgr: string, added: string): string => (sgr === '' ? added : `${sgr};${added}`)

function readLink(token: Tokens.Link | Tokens.Image, spans: Span[], sgr: string): Span[] {
  const href = decodeCharacterReferences(token.href)
  const raw = decodeCharacterReferences(token.raw)
  const shown = getLineText(spans)
  const isBare = raw === shown || raw === `<${shown}>`
  const address = { text: ` (${href})`, sgr: join(sgr, spanStyles.address) }
  if (isBare || shown === href) return spans.map((span) => ({ ...span, sgr: join(sgr, spanStyles.address) }))
  return [...spans, address]
}

const referenceNames =
  'amp & lt < gt > quot " apos \' nbsp \u00a0 mdash — ndash – hellip … bull • larr ← rarr → le ≤ ge ≥ ne ≠ times × deg ° copy ©'

const named = new Map(Array.from(referenceNames.matchAll(/(\S+) (.)/g), ([, name, char]) => [name, char]))

const reference = /&(?:#(\d{1,7})|#[xX]([\da-fA-F]{1,6})|([A-Za-z][A-Za-z\d]{1,8}));/g
const blank = /^[\s\u200b]$/

/**
 * Decodes references such as `&amp;` and `&#39;`. References to control characters, line breaks and unknown
 * names stay unchanged.
 */
function decodeCharacterReferences(text: string): string {
  if (!text.includes('&')) return text
  return text.replace(reference, (source: string, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return named.get(name) ?? source
    const code = decimal === undefined ? Number.parseInt(hex as string, 16) : Number(decimal)
    const isCharacter = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
    const char = isCharacter ? String.fromCodePoint(code) : source
    const isControl =
      char.search(unsafeCharacters) >= 0 || (blank.test(char) && char !== '\u00a0' && char !== ' ')
    return isControl ? source : char
  })
}
