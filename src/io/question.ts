import type { Crowd } from '../crowd.ts'
import { usage } from '../errors.ts'
import type { Stdin } from './input.ts'
import { createKeyboard, type Keyboard } from './keyboard.ts'
import type { StdStream } from './output.ts'

/**
 * Asks the person on a terminal, one question after the other. Not by npm's `read`: it loses the second of two pasted
 * lines, never answers after Ctrl-D, and hands on Ctrl-C as an error and no signal.
 */
export interface Questioner {
  /**
   * Resolves with the typed line. A hidden answer is not shown; a grave question ignores what was typed before it was
   * asked. Throws a usage error if the input ends (Ctrl-D).
   */
  ask(question: string, options?: { isHidden?: boolean; isGrave?: boolean }): Promise<string>
  /** Releases the terminal, so that the process can end. */
  close(): Promise<void>
}

export interface QuestionerOptions {
  stdin: Stdin
  stderr: StdStream
  /** While the terminal is raw, one of them restores it. */
  cleanups: Crowd<() => unknown>
}

export function createQuestioner(options: QuestionerOptions): Questioner {
  const keyboard = createKeyboard(options.stdin)
  return {
    async ask(question, { isHidden = false, isGrave = false } = {}) {
      if (isGrave) await dropTyped(keyboard, options)
      const answer = isHidden ? askHidden(question, keyboard, options) : askShown(question, keyboard, options)
      return (await answer).trim()
    },
    close: () => keyboard.close(),
  }
}

/** Raw, a terminal also delivers what was typed of a line that has no end yet. */
async function dropTyped(keyboard: Keyboard, { stdin, cleanups }: QuestionerOptions): Promise<void> {
  if (!stdin.isLive) return
  const restore = () => {
    stdin.setRaw?.(false)
    cleanups.delete(restore)
  }
  stdin.setRaw?.(true)
  cleanups.add(restore)
  try {
    await keyboard.dropTyped({ onDropped: (text) => text.includes(keys.interrupt) && stdin.interrupt?.() })
  } finally {
    restore()
  }
}

/** The terminal itself lets the person edit the line, and delivers it when it is complete. */
async function askShown(
  question: string,
  keyboard: Keyboard,
  { stderr }: QuestionerOptions,
): Promise<string> {
  stderr.open().write(question)
  let line = ''
  for (;;) {
    const char = await keyboard.read()
    if (char === undefined) {
      stderr.open().write('\n')
      throw ended()
    }
    if (char === '\n') return line
    line += char
  }
}

async function askHidden(
  question: string,
  keyboard: Keyboard,
  { stdin, stderr, cleanups }: QuestionerOptions,
): Promise<string> {
  const restore = () => {
    stdin.setRaw?.(false)
    stderr.open().write('\n')
    cleanups.delete(restore)
    return true
  }
  const hide = () => {
    // Before the question is shown: even a quick answer stays hidden.
    stdin.setRaw?.(true)
    cleanups.add(restore)
    stderr.open().write(question)
  }
  const suspend = async () => {
    restore()
    await stdin.suspend?.()
    hide()
  }
  hide()
  try {
    return await readKeys(keyboard, { interrupt: () => stdin.interrupt?.(), suspend })
  } finally {
    restore()
  }
}

/** Edits a line as a terminal does that is not raw. */
async function readKeys(
  keyboard: Keyboard,
  { interrupt, suspend }: { interrupt(): void; suspend(): Promise<void> },
): Promise<string> {
  let typed: string[] = []
  for (;;) {
    const key = await keyboard.read()
    if (key === '\r' || key === '\n') return typed.join('').replace(sequences, '')
    if (key === undefined || (key === keys.end && typed.length === 0)) throw ended()
    // The signal ends the process while this waits for the next key, and the cleanups restore the terminal.
    if (key === keys.interrupt) interrupt()
    else if (key === keys.suspend) await suspend()
    else if (key === keys.backspace || key === keys.delete) typed.pop()
    else if (key === keys.clear) typed = []
    else typed.push(key)
  }
}

const keys = {
  suspend: '\x1a',
  interrupt: '\x03',
  end: '\x04',
  backspace: '\b',
  clear: '\x15',
  delete: '\x7f',
}

/** What arrow keys send, and the marks around pasted text. */
const sequences = /\x1b(\[[0-?]*[ -/]*[@-~]|O.)/g

const ended = () => usage('the input ended before the question was answered')
