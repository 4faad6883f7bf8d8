import { looks, type Span } from './canvas.ts'

/** A span shows at most so many characters; a link's address does not count. */
const longestSpan = 200
/** The longest address, in characters. */
const longestAddress = 1000
/** A span has at most so many characters with its marks and addresses: for as long it is kept back, and read again. */
const longestSource = 2 * longestSpan + longestAddress
/** How far back it is looked for the beginning of a word or of a run, in characters. */
const longestPast = 10

/** How the address of a link is shown: behind its text, or as the terminal's own link. */
export type LinkStyle = 'address' | 'hyperlink'

interface InlineOptions {
  /** The look that all of it has at least. */
  base?: string
  links: LinkStyle
}

/**
 * The emphasis, code and links of one line. What cannot be part of a span is written at once. A span is kept back until its
 * end has come; one that has no end on its line, shows more than 200 characters, or is several times as long with its
 * addresses, is text as it came. Which of the two it is depends on the text alone, not on the pieces in which it comes.
 */
export class Inline {
  readonly #write: (spans: readonly Span[]) => void
  readonly #base: string
  readonly #links: LinkStyle
  /** The end of what is written. */
  #past = ''
  #kept = ''

  constructor(write: (spans: readonly Span[]) => void, { base = '', links }: InlineOptions) {
    this.#write = write
    this.#base = base
    this.#links = links
  }

  push(text: string): void {
    this.#kept += text
    this.#read(false)
  }

  /** The line has ended. */
  end(): void {
    this.#read(true)
    this.#past = ''
  }

  #read(isEnd: boolean): void {
    const text = this.#past + this.#kept
    const from = this.#past.length
    const { tokens, end } = readTokens(text, from, isEnd)
    const spans = toSpans(tokens, this.#base, this.#links)
    if (spans.length > 0) this.#write(spans)
    this.#kept = text.slice(end)
    this.#past = text.slice(Math.max(0, end - longestPast), end)
  }
}

/** What a whole line shows. */
export function readLine(line: string, options: InlineOptions): Span[] {
  const spans: Span[] = []
  const inline = new Inline((more) => spans.push(...more), options)
  inline.push(line)
  inline.end()
  return spans
}

type Emphasis = 'bold' | 'italic' | 'strike'

interface InlineToken {
  at: number
  end: number
  /** What it shows as text. */
  text: string
  kind: 'text' | 'code' | 'address' | 'mark'
  /** Of a mark that has a partner. */
  role?: 'begin' | 'end'
  emphasis?: readonly Emphasis[]
  /** Of the mark that begins a link's text: where the link leads. */
  address?: string
}

const emphases = new Map<string, readonly Emphasis[]>([
  ['*', ['italic']],
  ['_', ['italic']],
  ['**', ['bold']],
  ['__', ['bold']],
  ['***', ['bold', 'italic']],
  ['___', ['bold', 'italic']],
  ['~~', ['strike']],
])

/** A mark that may begin a span, while nothing has ended it. */
interface Opener {
  token: InlineToken
  /** How many characters are shown up to its end. */
  after: number
  /** It can only emphasize letters: nothing else has come since. */
  isInWord?: boolean
}

/**
 * Reads as far as it is decided what the text is: `end` is where the first mark stands that may still begin a span, or
 * what may still become something else.
 */
function readTokens(text: string, from: number, isEnd: boolean): { tokens: InlineToken[]; end: number } {
  const tokens: InlineToken[] = []
  /** From the outside in. One that begins too far back can't be ended any more. */
  let openers: Opener[] = []
  let shown = 0
  let at = from
  while (at < text.length) {
    const found = readToken(text, at, isEnd)
    if (found === undefined) break
    const { token, run } = found
    if (text[at] === ']' && closeLink(text, token)) {
      // Its address is not known to its end.
      if (token.end > text.length) break
    } else if (run?.mayClose && closeEmphasis(token, run.closesInWord)) {
      // It is a span now.
    } else {
      if (!letters.test(token.text)) openers = openers.filter(({ isInWord }) => !isInWord)
      if (run?.mayOpen || token.text === '[' || token.text === '![')
        openers.push({ token, after: shown + token.text.length, isInWord: run?.opensInWord ?? false })
    }
    if (!token.role) shown += token.text.length
    tokens.push(token)
    at = token.end
    while (openers[0] && !reaches(openers[0], at)) openers.shift()
  }
  const end = isEnd ? text.length : (openers[0]?.token.at ?? at)
  return { tokens: tokens.filter((token) => token.at < end), end }

  /** Whether a span that begins there may end here. */
  function reaches({ token, after }: Opener, end: number): boolean {
    return shown - after <= longestSpan && end - token.end <= longestSource
  }

  function closeEmphasis(closing: InlineToken, isInWord = false): boolean {
    const index = openers.findLastIndex(({ token }) => token.text === closing.text)
    const opener = openers[index]
    const inside = text.slice(opener?.token.end ?? closing.at, closing.at)
    // What cannot end it in the middle of a word leaves it open.
    if (isInWord && !(letters.test(inside) && inside.length > 1)) return false
    if (!opener) return splitThree(closing)
    const isSpan = reaches(opener, closing.at) && /[^*_~\s]/.test(inside)
    // `__init__` is a name more often than it is bold.
    if (!isSpan || (closing.text === '__' && /^\w+$/.test(inside))) {
      openers = openers.slice(0, index)
      return false
    }
    shown -= opener.token.text.length
    opener.token.role = 'begin'
    closing.role = 'end'
    // What began inside does not end outside.
    openers = openers.slice(0, index)
    return true
  }

  /** `***a** b*` begins two spans at once, and `**a *b***` ends two. */
  function splitThree(closing: InlineToken): boolean {
    const [mark = ''] = closing.text
    const last = openers.at(-1)
    if (closing.text.length === 3 && last && [mark, mark + mark].includes(last.token.text)) {
      const { text: first, at } = last.token
      const inner: InlineToken = {
        ...closing,
        end: at + first.length,
        text: first,
        emphasis: emphases.get(first),
      }
      inner.end = closing.at + first.length
      if (!closeEmphasis(inner)) return false
      tokens.push(inner)
      closing.at = inner.end
      closing.text = mark.repeat(3 - first.length)
      closing.emphasis = emphases.get(closing.text)
      return closeEmphasis(closing)
    }
    if (closing.text.length > 2 || last?.token.text !== mark.repeat(3)) return false
    const { token, after } = last
    const outer = mark.repeat(3 - closing.text.length)
    const inner: InlineToken = {
      ...token,
      at: token.at + outer.length,
      text: closing.text,
      emphasis: closing.emphasis,
    }
    Object.assign(token, { end: inner.at, text: outer, emphasis: emphases.get(outer) })
    tokens.splice(tokens.indexOf(token) + 1, 0, inner)
    openers.pop()
    openers.push({ token, after: after - closing.text.length }, { token: inner, after })
    return closeEmphasis(closing)
  }

  /** Returns whether the bracket ends a link's text; the token then ends behind the address. */
  function closeLink(text: string, closing: InlineToken): boolean {
    const index = openers.findLastIndex(({ token }) => token.text === '[' || token.text === '![')
    const opener = openers[index]
    if (!opener) return false
    const isWhole = reaches(opener, closing.at) && opener.token.end < closing.at
    const address = isWhole ? readAddress(text, closing.end, isEnd) : undefined
    if (address === undefined) {
      openers = openers.filter((each) => each !== opener)
      return false
    }
    closing.end = address === 'more' ? Infinity : address.end
    if (address === 'more') return true
    shown -= opener.token.text.length
    Object.assign(opener.token, { role: 'begin', address: address.text })
    const isShown = text.slice(opener.token.end, closing.at) === address.text
    Object.assign(closing, { role: 'end', address: isShown ? '' : address.text })
    openers = openers.slice(0, index)
    return true
  }
}

interface MarkRun {
  mayOpen: boolean
  mayClose: boolean
  /** In the middle of a word, only letters can stand between it and its partner. */
  opensInWord: boolean
  closesInWord: boolean
}

/** Reads one token; `undefined` if what follows decides what it is, and has not come. */
function readToken(
  text: string,
  at: number,
  isEnd: boolean,
): { token: InlineToken; run?: MarkRun } | undefined {
  const asText = (end: number) => ({
    token: { at, end, text: text.slice(at, end), kind: 'text' } as InlineToken,
  })
  const next = text[at + 1]
  if (isRestOfRun(text, at)) return asText(endOfRun(text, at))
  switch (text[at]) {
    case '\\':
      if (next === undefined && !isEnd) return undefined
      return isMark(next)
        ? { token: { at, end: at + 2, text: next as string, kind: 'text' } }
        : asText(at + 1)
    case '`':
      return readCode(text, at, isEnd)
    case '*':
    case '_':
    case '~':
      return readRun(text, at, isEnd)
    case '!':
      if (next === undefined && !isEnd) return undefined
      return asText(next === '[' ? at + 2 : at + 1)
    case '<':
    case 'h':
      return (
        readAutomaticLink(text, at, isEnd) ?? (isEnd || !mayBecomeLink(text, at) ? asText(at + 1) : undefined)
      )
    case '[':
    case ']':
      return asText(at + 1)
    default:
      return asText(nextSpecial(text, at + 1))
  }
}

/** ASCII punctuation: after a backslash it is text. */
const isMark = (char: string | undefined) => char !== undefined && /[!-/:-@[-`{-~]/.test(char)

const special = /[\\`*_~[\]<h!]/g

function nextSpecial(text: string, from: number): number {
  special.lastIndex = from
  return special.exec(text)?.index ?? text.length
}

function readCode(text: string, at: number, isEnd: boolean): { token: InlineToken } | undefined {
  const start = endOfRun(text, at)
  const count = start - at
  if (count > longestSpan) return { token: { at, end: start, text: text.slice(at, start), kind: 'text' } }
  if (start === text.length && !isEnd) return undefined
  const ticks = text.slice(at, start)
  for (let close = text.indexOf('`', start); close >= 0 && close - start <= longestSpan; ) {
    const end = endOfRun(text, close)
    if (end === text.length && !isEnd && end - close <= count) return undefined
    const code = text.slice(start, close)
    if (end - close === count && code.trim() !== '') {
      // A blank on both sides is there for the backticks in it.
      const shown = /^ .* $/.test(code) ? code.slice(1, -1) : code
      return { token: { at, end, text: shown, kind: 'code' } }
    }
    close = text.indexOf('`', end)
  }
  if (!isEnd && text.length - start <= longestSpan) return undefined
  return { token: { at, end: start, text: ticks, kind: 'text' } }
}

/** Whether a mark is the rest of a run that is too long for one, and of which all before it is written. */
const isRestOfRun = (text: string, at: number): boolean =>
  '*_~`'.includes(text[at] ?? ' ') &&
  text.slice(Math.max(0, at - longestPast), at) === text[at]?.repeat(longestPast)

function endOfRun(text: string, at: number): number {
  let end = at
  while (text[end] === text[at]) end++
  return end
}

/** More careful than Markdown, as answers have `2**10`, `f(*args)` and globs in their text. */
function readRun(text: string, at: number, isEnd: boolean): { token: InlineToken; run: MarkRun } | undefined {
  const end = endOfRun(text, at)
  // A full stop after it counts only with what follows it.
  const isDecided = isEnd || end - at > longestSpan
  if (!isDecided && (end === text.length || (text[end] === '.' && end + 1 === text.length))) return undefined
  const mark = text.slice(at, end)
  const emphasis = emphases.get(mark)
  const opens = isBeginning(text, at, mark) && isBegun(mark, text[end] ?? ' ')
  const closes = isEnding(mark, text[at - 1] ?? ' ', text.slice(end, end + 2))
  const isStar = emphasis !== undefined && mark[0] === '*' && letters.test(text[end] ?? ' ')
  const opensInWord = isStar && !opens && twoLetters.test(text.slice(Math.max(0, at - 2), at))
  const closesInWord = isStar && !closes && letters.test(text[at - 1] ?? ' ')
  return {
    token: { at, end, text: mark, kind: 'mark', emphasis },
    run: {
      mayOpen: emphasis !== undefined && (opens || opensInWord),
      mayClose: emphasis !== undefined && (closes || closesInWord),
      opensInWord,
      closesInWord,
    },
  }
}

const letters = /^[\p{L}\p{M}]+$/u

/** A single one may be a factor, as in `a*b*c`. */
const twoLetters = /^\p{L}[\p{L}\p{M}]$/u

/** The most brackets, quotes and other marks between the beginning of a word and a mark that opens. */
const mostBefore = 8

/**
 * After a letter only if its script has no blanks; after other marks only at the beginning of a word, but two marks also
 * after what joins words, as in `**Ctrl**+**C**`.
 */
function isBeginning(text: string, at: number, mark: string): boolean {
  let from = at
  while (from > 0 && at - from < mostBefore && '([{"\'<>*_~|-:'.includes(text[from - 1] as string)) from--
  const before = text[from - 1] ?? ' '
  if (isBlank(before) || (mark.length > 1 && '+/&,;'.includes(before))) return true
  return before > '\x7f' && (!isLetter(before) || (mark[0] !== '_' && isWide(before)))
}

/** A single mark may be a glob's, such as `*.md`. */
const isBegun = (mark: string, after: string) =>
  !isBlank(after) && !(mark.length > 1 ? '/' : '.,;:?)]}|=/>').includes(after)

function isEnding(mark: string, before: string, rest: string): boolean {
  const after = rest[0] ?? ' '
  if (isBlank(before) || '/([{'.includes(before)) return false
  if (mark[0] === '_') return !isLetter(after)
  if (after === '.') return !isLetter(rest[1] ?? ' ')
  return !/\w/.test(after) || (mark.length > 1 && !/\d/.test(after) && isLetter(before))
}

const isBlank = (char: string) => /\s/.test(char)

const isLetter = (char: string) => /[\p{L}\p{N}]/u.test(char)

/** Kana, ideographs and their punctuation, between which there are no blanks. */
const isWide = (char: string) => /[\u2e80-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff60]/.test(char)

/** The address behind a link's text, without its title; 'more' if its end has not come. */
function readAddress(
  text: string,
  at: number,
  isEnd: boolean,
): { text: string; end: number } | 'more' | undefined {
  if (text[at] === undefined && !isEnd) return 'more'
  if (text[at] !== '(') return undefined
  let depth = 0
  let end = at
  for (; end < text.length && end - at <= longestAddress; end++) {
    if (text[end] === '(') depth++
    if (text[end] === ')' && --depth === 0) {
      const [, address] =
        /^<?([^\s<>]+)>?(?:\s+(?:"[^"]*"|'[^']*'))?$/.exec(text.slice(at + 1, end).trim()) ?? []
      return address === undefined ? undefined : { text: address, end: end + 1 }
    }
  }
  return isEnd || end - at > longestAddress ? undefined : 'more'
}

const inBrackets = /<((?:https?:\/\/|mailto:)[^\s<>]{1,1000})>/y
const bare = /https?:\/\/[^\s<>`*"'[\]]{0,1000}/y

/** An address that is its own text: in angle brackets, which are not shown, or bare. */
function readAutomaticLink(text: string, at: number, isEnd: boolean): { token: InlineToken } | undefined {
  if (text[at] === '<') {
    inBrackets.lastIndex = at
    const [whole = '', address] = inBrackets.exec(text) ?? []
    return address === undefined
      ? undefined
      : { token: { at, end: at + whole.length, text: address, kind: 'address' } }
  }
  if (isLetter(text[at - 1] ?? ' ')) return undefined
  bare.lastIndex = at
  const address = bare.exec(text)?.[0]
  if (
    address === undefined ||
    (!isEnd && at + address.length === text.length && address.length < longestAddress)
  )
    return undefined
  let { length } = address
  while (/[.,;:!?)\]}_~|]/.test(address[length - 1] as string)) length--
  return { token: { at, end: at + length, text: address.slice(0, length), kind: 'address' } }
}

const beginnings = ['<https://', '<http://', '<mailto:', 'https://', 'http://']

/** Whether an address that begins here may have its end in what has not come yet. */
function mayBecomeLink(text: string, at: number): boolean {
  const rest = text.slice(at, at + longestAddress)
  if (rest.length === longestAddress || (rest[0] === 'h' && isLetter(text[at - 1] ?? ' '))) return false
  const isOpen = beginnings.some((each) => each.startsWith(rest) || rest.startsWith(each))
  return isOpen && !/[\s<>]/.test(rest.slice(1))
}

/** What is shown of tokens that are decided. */
function toSpans(tokens: readonly InlineToken[], base: string, links: LinkStyle): Span[] {
  const spans: Span[] = []
  const depth = { bold: 0, italic: 0, strike: 0 }
  let target: string | undefined
  const add = (text: string, own = '') => {
    const kinds = (['bold', 'italic', 'strike'] as const).filter((kind) => depth[kind] > 0)
    const look = [base, ...kinds.map((kind) => looks[kind]), own].filter((each) => each !== '').join(';')
    const last = spans.at(-1)
    if (last && last.look === look && last.target === target) last.text += text
    else spans.push(target === undefined ? { text, look } : { text, look, target })
  }
  for (const { kind, role, text, emphasis = [], address } of tokens) {
    if (!role) add(text, kind === 'code' ? looks.code : kind === 'address' ? looks.address : '')
    else if (address === undefined) for (const each of emphasis) depth[each] += role === 'begin' ? 1 : -1
    else {
      const isHyperlink = links === 'hyperlink' && isSafe(address)
      if (role === 'end' && target === undefined && address !== '') add(` (${address})`, looks.address)
      target = role === 'begin' && isHyperlink ? address : undefined
    }
  }
  return spans
}

/** An address that a terminal may be told: of the web or of mail, in characters that end no sequence. */
const isSafe = (address: string) => /^(?:https?:\/\/|mailto:)[!-~]+$/.test(address)
