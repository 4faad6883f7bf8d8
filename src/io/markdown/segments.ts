import { ideographPattern } from '../spans.ts'

/** An opening delimiter is text if no closing delimiter follows within this number of characters. */
const maxOpenLength = 200
const maxAddressLength = 2000
/**
 * Maximum length of a segment, in characters. Longer words are cut, because the lexer is quadratic in the
 * worst case.
 */
const maxSegmentLength = 4000

interface OpenDelimiter {
  char: string
  start: number
  /** Number of the delimiter's characters that are not closed. */
  count: number
}

/**
 * Splits a paragraph that arrives in pieces into segments. A segment ends between words and outside of any
 * open delimiter, so later text cannot change its layout. The segments depend only on the text, not on the
 * pieces. Only the characters after an unclosed backtick are read more than once.
 */
export class ParagraphSplitter {
  #text = ''
  #textOffset = 0
  #at = 0
  #opened: OpenDelimiter[] = []
  #segmentEnds: number[] = []
  #isInAddress = false
  #isEnd = false

  split(added: string, isEnd: boolean): string[] {
    this.#text += added
    this.#isEnd = isEnd
    const segments: string[] = []
    // A complete segment is cut off at once, so its characters cannot affect later segments.
    while (this.#at - this.#textOffset < this.#text.length && this.#readNext()) this.#cutOff(segments)
    if (isEnd) {
      this.#opened = []
      this.#addSegmentEnd(this.#at)
      this.#cutOff(segments)
    }
    return segments
  }

  #cutOff(segments: string[]): void {
    const limit = this.#opened[0]?.start ?? this.#at
    while ((this.#segmentEnds[0] ?? Number.POSITIVE_INFINITY) <= limit) {
      const length = (this.#segmentEnds.shift() as number) - this.#textOffset
      segments.push(this.#text.slice(0, length))
      this.#text = this.#text.slice(length)
      this.#textOffset += length
    }
  }

  /** Returns false if the meaning of the next character depends on text that has not arrived. */
  #readNext(): boolean {
    const index = this.#at - this.#textOffset
    const char = this.#text[index] as string
    while (this.#opened[0] && this.#at - this.#opened[0].start > maxOpenLength) this.#opened.shift()
    if (blank.test(char)) return this.#readBlank(index, char)
    const previous = this.#text[index - 1] ?? ' '
    const isWordStart = blank.test(previous)
    if (!isWordStart && startsWithIdeograph(this.#text, index)) this.#addSegmentEnd(this.#at)
    if (
      this.#at - (this.#segmentEnds.at(-1) ?? this.#textOffset) >= maxSegmentLength &&
      !lowSurrogate.test(char)
    )
      this.#addSegmentEnd(this.#at)
    // Inside a URL, the characters of delimiters are text, unless a delimiter before the URL is open.
    if (char === '/' && this.#opened.length === 0 && index > 1 && this.#text.startsWith(':/', index - 2))
      this.#isInAddress = true
    if (this.#isInAddress && char !== '<') return this.#move(1)
    this.#isInAddress = false
    switch (char) {
      case '\\':
        return this.#readEscape(index)
      case '`':
        return this.#readCode(index)
      case '<':
        return this.#readTag(index)
      case '[':
        this.#opened.push({ char, start: this.#at, count: 1 })
        return this.#move(1)
      case ']':
        return this.#readLinkEnd(index)
      case '*':
      case '_':
      case '~':
        return this.#readRun(index, char, previous)
    }
    return this.#move(1)
  }

  #move(count: number): true {
    this.#at += count
    return true
  }

  #addSegmentEnd(at: number): void {
    if (this.#segmentEnds.at(-1) !== at) this.#segmentEnds.push(at)
  }

  #readBlank(index: number, char: string): boolean {
    this.#isInAddress = false
    if (index > 0 && !blank.test(this.#text[index - 1] as string)) this.#addSegmentEnd(this.#at)
    // A segment also ends after the newline, so a finished row does not wait for the next row.
    if (char === '\n') this.#addSegmentEnd(this.#at + 1)
    return this.#move(1)
  }

  /**
   * Skips the escaped character, so no segment ends there. A backslash at the end of a line is a hard line
   * break, which the lexer reads together with the next line.
   */
  #readEscape(index: number): boolean {
    if (index + 1 === this.#text.length) return this.#isEnd && this.#move(1)
    return this.#move(2)
  }

  #readCode(index: number): boolean {
    const open = this.#measureRun(index, '`')
    if (open === undefined) return false
    const limit = index + open + maxOpenLength
    let at = index + open
    while (at < limit) {
      const found = this.#text.slice(at, limit).indexOf('`')
      if (found < 0) break
      const close = this.#measureRun(at + found, '`')
      if (close === undefined) return false
      at += found + close
      if (close === open) return this.#move(at - index)
    }
    return (this.#text.length >= limit || this.#isEnd) && this.#move(open)
  }

  /**
   * Returns the length of a run of `char`, or `undefined` if the run may continue in text that has not
   * arrived.
   */
  #measureRun(index: number, char: string): number | undefined {
    let end = index
    while (this.#text[end] === char && end - index < maxOpenLength) end++
    const isKnown = end < this.#text.length || this.#isEnd || end - index === maxOpenLength
    return isKnown ? end - index : undefined
  }

  #readTag(index: number): boolean {
    const rest = this.#text.slice(index, index + maxOpenLength)
    const [tag] = /^<[a-zA-Z/!?][^<>]*>/.exec(rest) ?? []
    if (tag !== undefined) return this.#move(tag.length)
    const canClose = /^<(?:[a-zA-Z/!?][^<>]*)?$/.test(rest)
    if (canClose && rest.length < maxOpenLength && !this.#isEnd) return false
    return this.#move(1)
  }

  #readLinkEnd(index: number): boolean {
    const open = this.#opened.findLastIndex(({ char }) => char === '[')
    if (open < 0) return this.#move(1)
    const next = this.#text[index + 1]
    if (next === undefined && !this.#isEnd) return false
    if (next === '(') {
      const rest = this.#text.slice(index + 1, index + 1 + maxAddressLength)
      const [address] = linkAddress.exec(rest) ?? []
      if (address !== undefined) {
        this.#close(open)
        return this.#move(1 + address.length)
      }
      const canClose = rest.length < maxAddressLength && !this.#isEnd && !noAddress.test(rest)
      if (canClose) return false
    }
    this.#opened.splice(open, 1)
    return this.#move(1)
  }

  #close(open: number): void {
    const [mark] = this.#opened.splice(open)
    this.#removeSegmentEndsAfter((mark as OpenDelimiter).start)
  }

  #removeSegmentEndsAfter(start: number): void {
    while ((this.#segmentEnds.at(-1) ?? 0) > start) this.#segmentEnds.pop()
  }

  /**
   * Applies the flanking rules of CommonMark, which decide whether `*`, `_` or `~~` opens or closes emphasis.
   */
  #readRun(index: number, char: string, previous: string): boolean {
    const length = this.#measureRun(index, char)
    if (length === undefined) return false
    const next = this.#text[index + length] ?? ' '
    const isLeft = !blank.test(next) && (!punctuation.test(next) || isBoundary(previous))
    const isRight = !blank.test(previous) && (!punctuation.test(previous) || isBoundary(next))
    const isIntraword = char === '_'
    const canOpen = isLeft && (!isIntraword || !isRight || punctuation.test(previous))
    const canClose = isRight && (!isIntraword || !isLeft || punctuation.test(next))
    // The layout keeps a single tilde as text.
    if (char === '~' && length !== 2) return this.#move(length)
    let rest = length
    while (canClose && rest > 0) {
      const open = this.#opened.findLastIndex((mark) => mark.char === char)
      const mark = this.#opened[open]
      if (!mark) break
      const closed = Math.min(rest, mark.count)
      rest -= closed
      mark.count -= closed
      if (mark.count === 0) this.#close(open)
      else {
        this.#opened.splice(open + 1)
        this.#removeSegmentEndsAfter(mark.start)
      }
    }
    if (canOpen && rest > 0) this.#opened.push({ char, start: this.#at, count: rest })
    return this.#move(length)
  }
}

const blank = /\s/
const punctuation = /[\p{P}\p{S}]/u
const lowSurrogate = /[\udc00-\udfff]/

const isBoundary = (char: string): boolean => blank.test(char) || punctuation.test(char)

const startsWithIdeograph = (text: string, index: number): boolean => {
  const code = text.codePointAt(index) as number
  return code > 0x2e7f && ideographPattern.test(String.fromCodePoint(code))
}

const linkAddress =
  /^\([ \t\n]*(?:<[^<>\n]*>|(?:[^\s()\\<]|\\.|\([^\s()]*\))(?:[^\s()\\]|\\.|\([^\s()]*\))*)?(?:[ \t\n]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t\n]*\)/

const noAddress = /^\([ \t\n]*[^\s<]\S*[ \t\n]+[^\s"'()]/
