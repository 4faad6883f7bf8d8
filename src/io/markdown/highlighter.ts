import { type ParseOptions, SugarHigh, tokenize } from 'sugar-high/core'
import { lang, languages } from 'sugar-high/lang'
import { onCommentEnd, onCommentStart } from 'sugar-high/lang/java'
import type { Span } from '../spans.ts'

/** Colours a line of code. Lines must be passed in order, without their newlines. */
export type Highlight = (line: string) => Span[]

const keywords =
  'abstract any as async await boolean break case catch class const continue debugger declare default delete do else enum export extends finally for from function if implements import in infer instanceof interface keyof let namespace never new null number object of override private protected public readonly return satisfies static string super switch this throw try type typeof undefined unknown var void while with yield true false'

/**
 * Options for JavaScript and TypeScript. The library's own options support JSX and regular expressions, but
 * scan parts of the text repeatedly.
 */
const script: ParseOptions = {
  keywords: new Set(keywords.split(' ')),
  templateStrings: true,
  onCommentStart,
  onCommentEnd,
}

const colours = new Map([
  ['keyword', '35'],
  ['string', '32'],
  ['class', '33'],
  ['property', '36'],
  ['entity', '36'],
  ['comment', '2'],
])

/** Returns the highlighter of a language, or `undefined` if the language is unknown. */
export function findHighlighter(language: string): Highlight | undefined {
  const id = lang(language)
  if (id === 'diff') return highlightDiff
  const options =
    id === 'javascript' || id === 'typescript' ? script : languages.find((each) => each.id === id)?.config
  if (!options || id === 'markdown' || id === 'plaintext') return undefined
  /** Start of the comment or string that contains the start of this line. */
  let opening = ''
  return (line) => {
    const before = opening === '' ? '' : `${opening}\n`
    const text = `${before}${line}\n${probe}`
    const tokens = tokenize(text, options)
    const whole = tokens.map(([, value]) => value).join('')
    if (whole !== text) return [{ text: line, sgr: '' }]
    opening = findOpening(tokens)
    return cut(tokens, before.length, before.length + line.length)
  }
}

/** A letter that is added after the line. Its colour shows whether a comment or a string is still open. */
const probe = 'x'

function findOpening(tokens: [number, string][]): string {
  const [type, value] = tokens.at(-1) as [number, string]
  if (value === probe) return ''
  if (getTokenName(type) === 'comment') return value.slice(0, 4).trimEnd()
  // A string ends with its line unless it began with a backtick or three quotes.
  const isTriple = tokens.at(-2)?.[1] === '""' || tokens.at(-2)?.[1] === "''"
  return value[0] === '`' || isTriple ? (value[0] as string).repeat(isTriple ? 3 : 1) : ''
}

const getTokenName = (type: number) => SugarHigh.TokenTypes[type] ?? ''

/** Returns the spans between two offsets. */
function cut(tokens: [number, string][], from: number, to: number): Span[] {
  const spans: Span[] = []
  let at = 0
  for (const [type, value] of tokens) {
    const text = value.slice(Math.max(0, from - at), Math.max(0, to - at))
    if (text !== '') spans.push({ text, sgr: colours.get(getTokenName(type)) ?? '' })
    at += value.length
  }
  return spans
}

function highlightDiff(line: string): Span[] {
  const sgr = line.startsWith('@@') ? '36' : line[0] === '+' ? '32' : line[0] === '-' ? '31' : ''
  return [{ text: line, sgr }]
}
