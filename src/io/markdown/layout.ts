import type { MarkedToken, Token, Tokens } from 'marked'
import { getText, measureWidth, type Span, type StyledLine, styles, wrapLine } from '../spans.ts'
import { findHighlighter, type Highlight } from './highlighter.ts'
import { type LinkStyle, readLines, trimEnd } from './inline.ts'
import { type FencedCode, indentOf, maxBlockLength } from './source.ts'

/** Space for a block. */
export interface LayoutSpace {
  /** Infinity in a pipe. */
  columns: number
  links: LinkStyle
  /** Number of quotes and list items around the block. */
  depth: number
}

/** Deeper levels are not indented, because each level narrows every line. */
export const maxDepth = 12
const maxRuleColumns = 80
const bar: Span = { text: '│ ', sgr: styles.frame }
const bullets = ['•', '◦', '▪']

export const getBullet = (depth: number): string => bullets[depth % bullets.length] as string

/** Lays out blocks. Blank lines between blocks of the source become one blank line. */
export function layOutBlocks(tokens: readonly Token[], room: LayoutSpace): StyledLine[] {
  const lines: StyledLine[] = []
  let isApart = false
  for (const token of tokens as readonly MarkedToken[]) {
    if (token.type !== 'space') {
      if (isApart && lines.length > 0) lines.push([])
      lines.push(...layOutBlock(token, room))
    }
    isApart = endsWithBlankLine(token.raw)
  }
  return lines
}

/** Returns whether the block's source ends with a blank line. */
export const endsWithBlankLine = (raw: string): boolean => /\n[ \t]*\n$/.test(raw)

function layOutBlock(token: MarkedToken, room: LayoutSpace): StyledLine[] {
  const { columns, links, depth } = room
  const wrapAll = (inner: readonly Token[], sgr: string) =>
    readLines(inner, sgr, links).flatMap((line) => wrapLine(line, columns))
  switch (token.type) {
    case 'heading':
      return wrapAll(token.tokens, styles.headings[token.depth - 1] ?? styles.bold)
    case 'paragraph':
      return wrapAll(token.tokens, '')
    case 'text':
      return wrapAll([token], '')
    case 'hr':
      return [[{ text: '─'.repeat(Math.max(3, Math.min(columns, maxRuleColumns))), sgr: styles.frame }]]
    case 'code':
      return layOutCode(token)
    case 'blockquote':
      if (depth >= maxDepth) break
      return layOutBlocks(token.tokens, inside(room, [bar])).map((line) => led([bar], line))
    case 'list':
      if (depth >= maxDepth) break
      return token.items.flatMap((item, index) => {
        const lines = layOutItem(item, room)
        return index < token.items.length - 1 && endsWithBlankLine(item.raw) ? [...lines, []] : lines
      })
    case 'table': {
      const lines = layOutTable(token, columns, links)
      if (lines) return lines
      break
    }
    case 'html':
      return layOutVerbatim(token.raw).filter((line) => !/^<br\s*\/?>$/i.test(getText(line).trim()))
  }
  return layOutVerbatim(token.raw)
}

/** Returns a line after its prefix, such as the bar of a quote. */
const led = (lead: StyledLine, line: StyledLine): StyledLine =>
  line.length > 0 ? [...lead, ...line] : trimEnd(lead)

const inside = (room: LayoutSpace, lead: StyledLine): LayoutSpace => ({
  ...room,
  columns: Math.max(1, room.columns - measureWidth(lead)),
  depth: room.depth + 1,
})

function layOutItem(item: Tokens.ListItem, room: LayoutSpace): StyledLine[] {
  const [mark = '-'] = /[-*+]|\d+[.)]/.exec(item.raw) ?? []
  const bullet = mark.length > 1 ? mark : getBullet(room.depth)
  const [first, ...rest] = item.tokens as MarkedToken[]
  const box = first?.type === 'checkbox' ? first.raw : ''
  const marker: StyledLine = [{ text: `${bullet} ${box}`, sgr: styles.marker }]
  const later: Span = { text: ' '.repeat(measureWidth(marker)), sgr: '' }
  const [line = [], ...lines] = layOutBlocks(box === '' ? item.tokens : rest, inside(room, marker))
  return [led(marker, line), ...lines.map((each) => led([later], each))]
}

function layOutCode({ text, lang = '' }: Tokens.Code): StyledLine[] {
  const highlight = findHighlighter(lang)
  return text
    .trimEnd()
    .split('\n')
    .map((line) => layOutCodeLine(line, highlight))
}

/** Lays out a line of a fenced code block. A very long line has no colours. */
export function layOutFencedLine({ indent, highlight }: FencedCode, line: string): StyledLine {
  const text = line.slice(Math.min(indent, indentOf(line)))
  return layOutCodeLine(text, text.length > maxBlockLength ? undefined : highlight)
}

const layOutCodeLine = (line: string, highlight?: Highlight): StyledLine =>
  line === '' ? [] : [{ text: '  ', sgr: '' }, ...(highlight?.(line) ?? [{ text: line, sgr: styles.code }])]

/** Returns the lines of a text unchanged. */
export const layOutVerbatim = (raw: string): StyledLine[] =>
  raw
    .trimEnd()
    .split('\n')
    .map((text) => [{ text, sgr: '' }])

/**
 * Maximum table width, even in a pipe. Without a limit, a short cell next to a very long cell would become a
 * long row of blanks.
 */
const maxTableColumns = 500
/** Minimum width of a column whose cells are wrapped. */
const minColumnWidth = 8

/**
 * Returns `undefined` if a row has more cells than columns, because the additional cells would be lost.
 */
function layOutTable(table: Tokens.Table, columns: number, links: LinkStyle): StyledLine[] | undefined {
  const all = [table.header, ...table.rows]
  if (wordsOf(table.raw) !== wordsOf(all.flatMap((row) => row.map(({ text }) => text)).join(' ')))
    return undefined
  const rows = all.map((row) =>
    row.map(({ tokens, header }) => readLines(tokens, header ? styles.bold : '', links)),
  )
  const widths = findWidths(rows, Math.min(columns, maxTableColumns), columns === Infinity)
  if (!widths) return layOutCells(rows, columns)
  const rule: StyledLine = [{ text: widths.map((width) => '─'.repeat(width)).join('─┼─'), sgr: styles.frame }]
  return rows.flatMap((row, index) => {
    const cells = row.map((lines, column) =>
      lines.flatMap((line) => wrapLine(line, widths[column] as number)),
    )
    const height = Math.max(...cells.map(({ length }) => length))
    const laidOut = Array.from({ length: height }, (_, at) =>
      joinCells(
        cells.map((lines) => lines[at] ?? []),
        widths,
        table.align,
      ),
    )
    return index === 0 ? [...laidOut, rule] : laidOut
  })
}

const wordsOf = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '')

/**
 * Returns the width of each column: its widest line if there is room, otherwise at least its longest word.
 */
function findWidths(
  rows: readonly StyledLine[][][],
  columns: number,
  isFixed: boolean,
): number[] | undefined {
  const header = rows[0] as StyledLine[][]
  const widestOf = (column: number, cut: (line: StyledLine) => StyledLine[]) =>
    Math.max(1, ...rows.flatMap((row) => row[column]?.flatMap(cut).map(measureWidth) ?? []))
  const whole = header.map((_, column) => widestOf(column, (line) => [line]))
  const room = columns - 3 * (header.length - 1)
  const sum = (widths: number[]) => widths.reduce((total, width) => total + width, 0)
  if (sum(whole) <= room) return whole
  if (isFixed) return undefined
  const least = header.map((_, column) =>
    Math.max(
      Math.min(whole[column] as number, minColumnWidth),
      widestOf(column, (line) => wrapLine(line, 1)),
    ),
  )
  if (sum(least) > room) return undefined
  let most = Math.max(...whole)
  const limited = () => whole.map((width, column) => Math.max(least[column] as number, Math.min(width, most)))
  while (sum(limited()) > room) most--
  return limited()
}

/** Lays out a table without room for its columns: each cell after its column's header, row after row. */
function layOutCells([header = [], ...rows]: readonly StyledLine[][][], columns: number): StyledLine[] {
  const names = header.map((lines) => lines.flatMap((line, index) => (index > 0 ? [blank, ...line] : line)))
  if (rows.length === 0) return names.flatMap((name) => wrapLine(name, columns))
  return rows.flatMap((row, index) => {
    const lines = row.flatMap((cell, column) => {
      const name = names[column] ?? []
      const start: StyledLine = name.length > 0 ? [...name, { text: ': ', sgr: styles.bold }] : []
      const [first = [], ...others] = cell
      return [trimEnd([...start, ...first]), ...others].flatMap((line) => wrapLine(line, columns))
    })
    return index === 0 ? lines : [[], ...lines]
  })
}

const blank: Span = { text: ' ', sgr: '' }

/** Joins one line of each cell of a row. The result ends with the last cell that has text. */
function joinCells(
  cells: readonly StyledLine[],
  widths: readonly number[],
  aligns: Tokens.Table['align'],
): StyledLine {
  const last = cells.findLastIndex((line) => getText(line) !== '')
  return cells.slice(0, last + 1).flatMap((line, column): Span[] => {
    const free = Math.max(0, (widths[column] as number) - measureWidth(line))
    const align = aligns[column]
    const before = align === 'right' ? free : align === 'center' ? free >> 1 : 0
    const blank = (count: number): Span => ({ text: ' '.repeat(count), sgr: '' })
    const frame: Span[] = column > 0 ? [{ text: ' │ ', sgr: styles.frame }] : []
    return [...frame, blank(before), ...line, ...(column < last ? [blank(free - before)] : [])]
  })
}
