import { getDefaults, Lexer, type Token, Tokenizer } from 'marked'

/**
 * Maximum length of a block, in characters. Longer blocks are printed verbatim, because the lexer is
 * quadratic in the worst case.
 */
export const maxBlockLength = 4000

/** Ignores reference links, because the definition of a link may be in text that has not arrived. */
class SourceTokenizer extends Tokenizer {
  override reflink(): undefined {}
}

const createLexer = () => new Lexer({ ...getDefaults(), tokenizer: new SourceTokenizer() })

export function readInlineTokens(text: string): Token[] {
  try {
    return createLexer().inlineTokens(text)
  } catch {
    return [{ type: 'text', raw: text, text, escaped: false }]
  }
}

/** Counts the columns of the blanks at the start of a text that begins in column `start`. */
export const countIndent = (text: string, start = 0): number => skipBlanks(text, start).column - start

/** If only some columns of a tab are removed, its other columns become spaces. */
export function removeIndent(line: string, columns: number): string {
  const { at, column } = skipBlanks(line, 0, columns)
  return ' '.repeat(Math.max(0, column - columns)) + line.slice(at)
}

function skipBlanks(text: string, start: number, end = Infinity): { at: number; column: number } {
  let at = 0
  let column = start
  while (column < end && at < text.length && text[at]?.trim() === '')
    column += text[at++] === '\t' ? 4 - (column % 4) : 1
  return { at, column }
}

export function readOpeningFence(line: string): string | undefined {
  const [, mark, info = ''] = /^(`{3,}|~{3,})(.*)$/.exec(line) ?? []
  return mark?.[0] === '`' && info.includes('`') ? undefined : mark
}

/** The closing fence has the same character as the opening fence `mark`, and is at least as long. */
export function closesFence(line: string, mark: string): boolean {
  const text = line.trim()
  return text.length >= mark.length && text === (mark[0] as string).repeat(text.length)
}
