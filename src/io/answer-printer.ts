import { startOf } from '../wire/text-start.ts'
import { escapeControls } from './escape.ts'
import type { Output } from './output.ts'

/** Prints an answer's text as it comes. */
export interface AnswerPrinter {
  /** Adds text that may be cut anywhere, also inside a line break or a character. */
  add(text: string): void
  /** Writes what was added; resolves when there is room for more. */
  write(): Promise<void>
  /** Ends the text with one newline and waits until it is written. */
  end(): Promise<void>
  /**
   * Ends a half-written line on a terminal, or prints the open block as it came. Returns whether it wrote something, so that
   * the cursor is at the start of a line. Synchronous, so that a signal can call it.
   */
  breakLine(): boolean
}

/** How much text is written at a time, in UTF-16 units. */
const maxWriteLength = 256 * 1024

/** On a terminal, control characters are made visible; in a pipe the text stays as it is. */
export function createAnswerPrinter(output: Output): AnswerPrinter {
  /** Line breaks and half a character. They wait for the text that follows them. */
  let heldBack = ''
  let holdsHalfCharacter = false
  let pending = ''
  let hasText = false
  let isInLine = false

  return {
    add(text) {
      if (text === '') return
      const end = findPrintableEnd(text)
      const isMoreBreaks = end === 0 && isLineBreak(text[0]) && !holdsHalfCharacter
      if (!isMoreBreaks) {
        pending += heldBack
        heldBack = ''
      }
      pending += text.slice(0, end)
      heldBack += text.slice(end)
      holdsHalfCharacter = endsInHalfCharacter(text)
    },
    async write() {
      if (pending === '') return
      const text = output.isTerminal ? escapeControls(pending.replaceAll('\r\n', '\n')) : pending
      pending = ''
      hasText = true
      isInLine = !text.endsWith('\n')
      // In pieces: the bytes of a long text would take up as much memory once more.
      for (let start = 0; start < text.length; ) {
        const next = startOf(text.slice(start, start + maxWriteLength + 1), maxWriteLength)
        await output.write(next)
        start += next.length
      }
    },
    async end() {
      if (holdsHalfCharacter) pending += heldBack
      heldBack = ''
      await this.write()
      if (hasText) await output.write('\n')
      isInLine = false
      await output.flush()
    },
    breakLine() {
      const isBroken = isInLine && output.isTerminal
      isInLine = false
      if (isBroken) output.write('\n').catch(() => {})
      return isBroken
    },
  }
}

/** Where the text that is not printed yet begins. */
function findPrintableEnd(text: string): number {
  let end = text.length
  while (isLineBreak(text[end - 1])) end--
  return end === text.length && endsInHalfCharacter(text) ? end - 1 : end
}

const isLineBreak = (char: string | undefined): boolean => char === '\n' || char === '\r'

/** Whether it ends in the first half of a character. */
const endsInHalfCharacter = (text: string): boolean => /[\ud800-\udbff]/.test(text.slice(-1))
