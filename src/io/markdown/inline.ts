import { readAddress, readTarget } from './address.ts'
import { type Kind, kindsOf, pair, type Run, readRun } from './marks.ts'
import { looks, type Span } from './paint.ts'
import { endOfTicks, findTicks } from './ticks.ts'

/** A piece of a word: where it ends, what is shown for it, and its look if not that of the text around it. */
interface Piece {
  end: number
  text: string
  look?: string
  isCode?: boolean
  run?: Run
}

/** The character that opened it, or '' where it is not open. */
type Open = Record<Kind, string>

/** How often each is open inside of the word. */
type Depth = Record<Kind, number>

const plain: Depth = { bold: 0, italic: 0, strike: 0 }
const nothing: Open = { bold: '', italic: '', strike: '' }

/**
 * The emphasis, code and addresses of one paragraph, heading or cell. Nothing waits for another word, so a mark is left
 * out only if its partner is in the same word. All others are shown, and those that may be emphasis are dim.
 */
export class Inline {
  readonly #base: string
  /** What words before this one have opened. */
  readonly #open: Open = { ...nothing }
  /** How many backticks a code span over several words began with; 0 outside. */
  #ticks = 0
  #last = ' '

  /** With a base, all has that look at least. */
  constructor(base = '') {
    this.#base = base
  }

  /** Emphasis may never be closed, so it ends with its line; a code span goes on, as what is in it is no mark. */
  startLine(): void {
    Object.assign(this.#open, nothing)
    this.#last = ' '
  }

  /** Words come in order; a line that is all known is one. The blank before a word is a span of its own. */
  read(word: string, isSpaced: boolean): Span[] {
    const isCode = this.#ticks > 0
    const spans: Span[] = isSpaced ? [{ text: ' ', look: this.#lookOf(plain, isCode) }] : []
    const blanks = spans.length
    const pieces = this.#cut(word, isSpaced ? ' ' : this.#last)
    this.#last = word.at(-1) as string
    pair(pieces.map(({ run }) => run))
    const inWord = { ...plain }
    for (const piece of pieces) {
      const { text, look } = piece.run ? this.#readMark(piece.run, inWord) : piece
      const shown = { text, look: look ?? this.#lookOf(inWord, piece.isCode) }
      const end = spans.length > blanks ? spans.at(-1) : undefined
      if (end?.look === shown.look) end.text += text
      else if (text !== '') spans.push(shown)
    }
    return spans
  }

  #cut(word: string, before: string): Piece[] {
    const pieces: Piece[] = []
    for (let at = 0; at < word.length; ) {
      const found = this.#ticks > 0 || word[at] === '`' ? this.#readCode(word, at) : undefined
      pieces.push(...(found ?? [readText(word, at, before)]))
      at = pieces.at(-1)?.end as number
    }
    return pieces
  }

  /** Code up to the mark that closes it. Outside of code the word has a mark here that opens it. */
  #readCode(word: string, at: number): Piece[] {
    const isOpening = this.#ticks === 0
    const from = isOpening ? endOfTicks(word, at) : at
    const count = isOpening ? from - at : this.#ticks
    const end = findTicks(word, from, count)
    const code = { end: end ?? word.length, text: word.slice(from, end), isCode: true }
    this.#ticks = end === undefined ? count : 0
    if (end !== undefined && isOpening && code.text.trim() !== '') return [{ ...code, end: end + count }]
    const mark = (end: number): Piece => ({ end, text: '`'.repeat(count), look: looks.mark })
    return [...(isOpening ? [mark(from)] : []), code, ...(end === undefined ? [] : [mark(end + count)])]
  }

  #readMark(run: Run, inWord: Depth): { text: string; look?: string } {
    const { mark, role } = run
    if (!role) return { text: mark, look: this.#changes(run) ? looks.mark : undefined }
    for (const kind of kindsOf(mark)) inWord[kind] += role === 'begin' ? 1 : -1
    // `__init__` is a name more often than it is bold.
    return { text: mark.startsWith('__') ? mark : '', look: looks.mark }
  }

  /** Closes or opens emphasis over several words; returns whether the mark did. */
  #changes({ mark, mayOpen, mayClose }: Run): boolean {
    const open = this.#open
    const char = mark[0] as string
    const closed = mayClose ? kindsOf(mark).filter((kind) => open[kind] === char) : []
    for (const kind of closed) open[kind] = ''
    if (closed.length > 0 || !mayOpen || mark.startsWith('__')) return closed.length > 0
    const opened = kindsOf(mark).filter((kind) => open[kind] === '')
    for (const kind of opened) open[kind] = char
    return opened.length > 0
  }

  #lookOf(inWord: Depth, isCode = false): string {
    const all = [this.#base]
    for (const kind of ['bold', 'italic', 'strike'] as const) {
      if (this.#open[kind] !== '' || inWord[kind] > 0) all.push(looks[kind])
    }
    if (isCode) all.push(looks.code)
    return all.filter((look) => look !== '').join(';')
  }
}

function readText(word: string, at: number, before: string): Piece {
  switch (word[at]) {
    case '\\':
      return isMark(word[at + 1]) ? { end: at + 2, text: word[at + 1] as string } : asText(word, at, at + 1)
    case '*':
    case '_':
    case '~': {
      const { end, ...run } = readRun(word, at, before)
      return { end, text: run.mark, run }
    }
    case ']':
      return word[at + 1] === '(' ? readTarget(word, at) : asText(word, at, at + 1)
    case '<':
    case 'h':
      return readAddress(word, at, word[at - 1] ?? before) ?? asText(word, at, at + 1)
    default:
      return asText(word, at, nextSpecial(word, at + 1))
  }
}

const asText = (word: string, at: number, end: number): Piece => ({ end, text: word.slice(at, end) })

/** ASCII punctuation: after a backslash it is text. */
const isMark = (char: string | undefined) => char !== undefined && /[!-/:-@[-`{-~]/.test(char)

function nextSpecial(word: string, from: number): number {
  special.lastIndex = from
  return special.exec(word)?.index ?? word.length
}

const special = /[\\`*_~\]<h]/g
