import { escapeControls } from './escape.ts'
import type { Output } from './output.ts'

/** Prints an answer's text as it comes. */
export interface AnswerPrinter {
  /** Takes text cut anywhere, also inside a line break or a character. */
  add(text: string): void
  /** Writes what was added; resolves when there is room for more. */
  write(): Promise<void>
  /** Ends the text with one newline and waits until it is written. Returns whether there was any text. */
  end(): Promise<boolean>
  /** Ends a line that was left half-written on a terminal; synchronous, for where there is no time left. */
  breakLine(): void
}

/** On a terminal, control characters are made visible; anywhere else the text stays as it is. */
export function createAnswerPrinter(output: Output): AnswerPrinter {
  /** Line breaks and half a character, kept back until it is known what follows. */
  let kept = ''
  let pending = ''
  let hasText = false
  let isInLine = false

  return {
    add(text) {
      const whole = kept + text
      const end = /[\r\n]*$|[\ud800-\udbff]$/.exec(whole)?.index ?? whole.length
      kept = whole.slice(end)
      pending += whole.slice(0, end)
    },
    async write() {
      if (pending === '') return
      const text = output.isTerminal ? escapeControls(pending.replaceAll('\r\n', '\n')) : pending
      pending = ''
      hasText = true
      isInLine = !text.endsWith('\n')
      await output.write(text)
    },
    async end() {
      pending += kept.replace(/[\r\n]+$/, '')
      kept = ''
      await this.write()
      if (hasText) await output.write('\n')
      isInLine = false
      await output.flush()
      return hasText
    },
    breakLine() {
      if (isInLine && output.isTerminal) void output.write('\n')
      isInLine = false
    },
  }
}
