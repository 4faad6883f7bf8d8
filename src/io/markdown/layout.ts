import type { MarkedToken, Token, Tokens } from 'marked'
import { measureWidth, type Span, type StyledLine, spanStyles, wrapLine } from '../spans.ts'
import { layOutInlineTokens, trimLineEnd } from './inline.ts'
import { type FencedCode, readBlockTokens, removeIndent } from './source.ts'
import { layOutTable } from './table.ts'

export interface LayoutSpace {
  columns: number
  depth: number
}

/** Quotes and list items below this level are not indented further, because each level narrows every line. */
export const maxLayoutDepth = 12
const maxRuleColumns = 80
const bar: Span = { text: '│ ', sgr: spanStyles.frame }
const bullets = ['•', '◦', '▪']

export function createListItemMarker(
  { mark, box }: { mark: string; box: string },
  number: number,
  depth: number,
): StyledLine {
  const bullet = mark.length > 1 ? `${number}${mark.slice(-1)}` : bullets[depth % bullets.length]
  return [{ text: `${bullet} ${box}`, sgr: spanStyles.marker }]
}

/** Several blank lines between two blocks become one. */
export function layOutBlocks(tokens: readonly Token[], space: LayoutSpace): StyledLine[] {
  const lines: StyledLine[] = []
  let needsBlankLine = false
  for (const token of tokens as readonly MarkedToken[]) {
    if (token.type !== 'space') {
      if (needsBlankLine && lines.length > 0) lines.push([])
      lines.push(...layOutBlock(token, space))
    }
    needsBlankLine = endsWithBlankLine(token.raw)
  }
  return lines
}

const endsWithBlankLine = (raw: string): boolean => /\n[ \t]*\n$/.test(raw)

function layOutBlock(token: MarkedToken, space: LayoutSpace): StyledLine[] {
  const { columns, depth } = space
  const wrapAll = (inner: readonly Token[], sgr: string) =>
    layOutInlineTokens(inner, sgr).flatMap((line) => wrapLine(line, columns))
  switch (token.type) {
    case 'heading':
      return wrapAll(token.tokens, spanStyles.headings[token.depth - 1] ?? spanStyles.bold)
    case 'paragraph':
      return wrapAll(token.tokens, '')
    case 'text':
      return wrapAll([token], '')
    case 'hr':
      return [[{ text: '─'.repeat(Math.max(3, Math.min(columns, maxRuleColumns))), sgr: spanStyles.frame }]]
    case 'code':
      return layOutCode(token)
    case 'blockquote':
      if (depth >= maxLayoutDepth) break
      return layOutQuote(token, narrowSpace(space, [bar])).map((line) => prefixLine([bar], line))
    case 'list':
      if (depth >= maxLayoutDepth) break
      return token.items.flatMap((item, index) => {
        const lines = layOutItem(item, Number(token.start) + index, space)
        return index < token.items.length - 1 && endsWithBlankLine(item.raw) ? [...lines, []] : lines
      })
    case 'table':
      return layOutTable(token.raw, columns)
  }
  return layOutVerbatim(token.raw)
}

/** Prints the first line of a GitHub alert, such as `[!NOTE]`, as a bold label. */
function layOutQuote({ text, tokens }: Tokens.Blockquote, space: LayoutSpace): StyledLine[] {
  const [line, kind] = /^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*(?:\n|$)/i.exec(text) ?? []
  if (line === undefined || kind === undefined) return layOutBlocks(tokens, space)
  const label = kind[0]?.toUpperCase() + kind.slice(1).toLowerCase()
  return [
    [{ text: label, sgr: spanStyles.bold }],
    ...layOutBlocks(readBlockTokens(text.slice(line.length)), space),
  ]
}

const prefixLine = (lead: StyledLine, line: StyledLine): StyledLine =>
  line.length > 0 ? [...lead, ...line] : trimLineEnd(lead)

const narrowSpace = (space: LayoutSpace, lead: StyledLine): LayoutSpace => ({
  ...space,
  columns: Math.max(1, space.columns - measureWidth(lead)),
  depth: space.depth + 1,
})

function layOutItem(item: Tokens.ListItem, number: number, space: LayoutSpace): StyledLine[] {
  const [mark = '-'] = /[-*+]|\d+[.)]/.exec(item.raw) ?? []
  const [first, ...rest] = item.tokens as MarkedToken[]
  const box = first?.type === 'checkbox' ? first.raw : ''
  const marker = createListItemMarker({ mark, box }, number, space.depth)
  const later: Span = { text: ' '.repeat(measureWidth(marker)), sgr: '' }
  const [line = [], ...lines] = layOutBlocks(box === '' ? item.tokens : rest, narrowSpace(space, marker))
  return [prefixLine(marker, line), ...lines.map((each) => prefixLine([later], each))]
}

const layOutCode = ({ text }: Tokens.Code): StyledLine[] => text.trimEnd().split('\n').map(layOutCodeLine)

export const layOutFencedLine = ({ indent }: FencedCode, line: string): StyledLine =>
  layOutCodeLine(removeIndent(line, indent))

export const layOutCodeLine = (line: string): StyledLine =>
  line === ''
    ? []
    : [
        { text: '  ', sgr: '' },
        { text: line, sgr: spanStyles.code },
      ]

const layOutVerbatim = (raw: string): StyledLine[] =>
  raw
    .trimEnd()
    .split('\n')
    .map((text) => [{ text, sgr: '' }])
