import { isLetter, readAddress, readTarget, type Step } from './address.ts'
import { looks, type Span } from './paint.ts'

/** What is open: the character that opened it, or '' where it is not. */
interface Open {
  bold: string
  italic: string
  strike: string
  /** How many backticks a code span began with; 0 outside. */
  ticks: number
}

/**
 * The emphasis, code and addresses of one paragraph, heading or cell. Nothing waits for the mark that closes it: a mark
 * that is never closed changes the look of the rest of its paragraph, and no more.
 */
export class Inline {
  readonly #base: string
  readonly #open: Open = { bold: '', italic: '', strike: '', ticks: 0 }
  #last = ' '

  /** With a base, all has that look at least. */
  constructor(base = '') {
    this.#base = base
  }

  /** Words come in order. The blank before a word is a span of its own. */
  read(word: string, isSpaced: boolean): Span[] {
    const open = this.#open
    const before = isSpaced ? ' ' : this.#last
    this.#last = word.at(-1) as string
    const spans: Span[] = isSpaced ? [{ text: ' ', look: lookOf(open, this.#base) }] : []
    const blanks = spans.length
    for (let at = 0; at < word.length; ) {
      const step = open.ticks > 0 ? readCode(word, at, open) : readText(word, at, before, open)
      // Only now, as the step may have opened or closed something.
      const look = step.look ?? lookOf(open, this.#base)
      const end = spans.length > blanks ? spans.at(-1) : undefined
      if (end?.look === look) end.text += step.text
      else if (step.text !== '') spans.push({ text: step.text, look })
      at = step.end
    }
    return spans
  }
}

function lookOf({ bold, italic, strike, ticks }: Open, base: string): string {
  let look = base
  if (bold) look += `;${looks.bold}`
  if (italic) look += `;${looks.italic}`
  if (strike) look += `;${looks.strike}`
  if (ticks > 0) look += `;${looks.code}`
  return base === '' ? look.slice(1) : look
}

function readCode(word: string, at: number, open: Open): Step {
  if (word[at] !== '`') return { end: nextOf(word, at, '`'), text: word.slice(at, nextOf(word, at, '`')) }
  const end = endOfRun(word, at)
  if (end - at !== open.ticks) return { end, text: word.slice(at, end) }
  open.ticks = 0
  return { end, text: '' }
}

function readText(word: string, at: number, before: string, open: Open): Step {
  switch (word[at]) {
    case '\\':
      return isMark(word[at + 1]) ? { end: at + 2, text: word[at + 1] as string } : asText(word, at, at + 1)
    case '`':
    case '*':
    case '_':
    case '~':
      return readRun(word, at, before, open)
    case ']':
      return word[at + 1] === '(' ? readTarget(word, at) : asText(word, at, at + 1)
    case '<':
    case 'h':
      return readAddress(word, at, word[at - 1] ?? before) ?? asText(word, at, at + 1)
    default:
      return asText(word, at, nextSpecial(word, at + 1))
  }
}

function readRun(word: string, at: number, before: string, open: Open): Step {
  const end = endOfRun(word, at)
  if (word[at] !== '`') {
    return {
      end,
      text: emphasise(word[at] as string, end - at, open, word[at - 1] ?? before, word[end] ?? ' '),
    }
  }
  open.ticks = end - at
  return { end, text: '' }
}

const asText = (word: string, at: number, end: number): Step => ({ end, text: word.slice(at, end) })

/** Closes and opens what a run of one mark may; returns the marks that are text. */
function emphasise(char: string, count: number, open: Open, before: string, after: string): string {
  if (count > 3 || (char === '~' && count !== 2)) return char.repeat(count)
  let left = count
  const kinds = char === '~' ? (['strike'] as const) : (['bold', 'italic'] as const)
  const sizeOf = (kind: (typeof kinds)[number]) => (kind === 'italic' ? 1 : 2)
  if (!isBlank(before) && !(char === '_' && isLetter(after))) {
    for (const kind of kinds) {
      if (open[kind] !== char || left < sizeOf(kind)) continue
      open[kind] = ''
      left -= sizeOf(kind)
    }
  }
  if (mayOpen(char, count, before, after)) {
    for (const kind of kinds) {
      // What was closed just now is not opened again.
      if (open[kind] !== '' || left < sizeOf(kind)) continue
      open[kind] = char
      left -= sizeOf(kind)
    }
  }
  return char.repeat(left)
}

function mayOpen(char: string, count: number, before: string, after: string): boolean {
  if (isBlank(after)) return false
  if (!isLetter(before)) return true
  // Neither a product such as 2*3 nor a name such as snake_case has emphasis.
  return char === '*' && !isMark(after) && !(count === 1 && /\w/.test(before) && /\w/.test(after))
}

const isBlank = (char: string) => /\s/.test(char)
/** ASCII punctuation: after a backslash it is text. */
const isMark = (char: string | undefined) => char !== undefined && /[!-/:-@[-`{-~]/.test(char)

function endOfRun(word: string, at: number): number {
  let end = at + 1
  while (word[end] === word[at]) end++
  return end
}

function nextOf(word: string, at: number, char: string): number {
  const found = word.indexOf(char, at)
  return found < 0 ? word.length : found
}

function nextSpecial(word: string, from: number): number {
  special.lastIndex = from
  return special.exec(word)?.index ?? word.length
}

const special = /[\\`*_~\]<h]/g
