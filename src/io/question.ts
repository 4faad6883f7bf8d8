import type { Crowd } from '../crowd.ts'
import { CliError } from '../errors.ts'
import type { Stdin } from './input.ts'
import { createKeyboard, type Keyboard } from './keyboard.ts'
import type { StdStream } from './output.ts'

/**
 * Asks the person on a terminal, one question after the other. Not by npm's `read` nor Node's `readline`: to them each
 * line of a pasted text is an answer, also to what was not asked yet.
 */
export interface Questioner {
  /**
   * Resolves with the typed line. A hidden answer is not shown. What was typed before the question is dropped, and what
   * is pasted is a part of the line, however many lines it has. Throws `InputEnded` if the input ends (Ctrl-D).
   */
  ask(question: string, options?: { isHidden?: boolean }): Promise<string>
  /** Releases the terminal, so that the process can end. What is written next begins on a new line. */
  close(): Promise<void>
}

/** There was no answer, and there will be none. */
export class InputEnded extends CliError {
  constructor() {
    super('usage', 'the input ended before the question was answered')
  }
}

export interface QuestionerOptions {
  stdin: Stdin
  stderr: StdStream
  env: Readonly<Record<string, string | undefined>>
  /** While the terminal is raw, one of them restores it. */
  cleanups: Crowd<() => unknown>
}

export function createQuestioner(options: QuestionerOptions): Questioner {
  const keyboard = createKeyboard(options.stdin)
  /** The question that waits for its answer. */
  let field: Field | undefined
  return {
    async ask(question, { isHidden = false } = {}) {
      const { rowsOf, withoutLast } = await import('./width.ts')
      const opened = openField(question, { ...options, isHidden, rowsOf })
      field = opened
      try {
        await dropTyped(keyboard, options.stdin)
        opened.show('')
        return (await readLine(keyboard, { field: opened, stdin: options.stdin, withoutLast })).trim()
      } finally {
        opened.close()
      }
    },
    close() {
      field?.close()
      return keyboard.close()
    },
  }
}

/** Raw, a terminal also delivers what was typed of a line that has no end yet. */
async function dropTyped(keyboard: Keyboard, { isLive, interrupt }: Stdin): Promise<void> {
  if (isLive)
    await keyboard.dropTyped({ onDropped: (text) => text.includes(keys.interrupt) && interrupt?.() })
}

/** A question and what was typed below it, on a terminal that is raw as long as it is open. */
interface Field {
  /** What was typed until now. */
  show(typed: string): void
  /** Gives the terminal back to the shell, and takes it again when the run goes on. */
  suspend(): Promise<void>
  close(): void
}

interface FieldOptions extends QuestionerOptions {
  isHidden: boolean
  rowsOf(text: string, columns: number): number
}

function openField(
  question: string,
  { isHidden, rowsOf, stdin, stderr, env, cleanups }: FieldOptions,
): Field {
  const hasMarks = stdin.setRaw !== undefined && stderr.isTerminal && env.TERM !== 'dumb'
  const write = (text: string) => void stderr.open().write(text)
  /** What stands on the screen; nothing before the question is shown. */
  let shown = ''
  /** As long as the terminal is taken. */
  let forget: (() => void) | undefined

  const begin = () => write(`${hasMarks ? pasted.areMarked : ''}${shown}`)

  function take(): void {
    // Before the question is shown: even a quick answer stays hidden.
    stdin.setRaw?.(true)
    cleanups.add(release)
    const takeAgain = () => {
      // Whoever had the terminal meanwhile may have set it otherwise.
      stdin.setRaw?.(false)
      stdin.setRaw?.(true)
      if (shown === '') return
      write('\r')
      begin()
    }
    forget = stdin.onContinue?.(takeAgain) ?? (() => {})
  }

  function release(): boolean {
    if (!forget) return false
    cleanups.delete(release)
    forget()
    forget = undefined
    stdin.setRaw?.(false)
    if (shown === '') return false
    write(`${hasMarks ? pasted.areNot : ''}\n`)
    return true
  }

  take()
  return {
    show(typed) {
      // The run has ended meanwhile.
      if (!forget) return
      const before = shown
      shown = question + (isHidden ? '' : typed.replace(/[\n\t]/g, (char) => (char === '\n' ? '↵' : ' ')))
      if (before === '') begin()
      else if (shown.startsWith(before)) write(shown.slice(before.length))
      else if (hasMarks) write(`${upBy(rowsOf(before, stderr.columns || Infinity) - 1)}\r\x1b[J${shown}`)
      else write(`\n${shown}`)
    },
    async suspend() {
      release()
      await stdin.suspend?.()
      take()
      begin()
    },
    close: release,
  }
}

const upBy = (rows: number) => (rows > 0 ? `\x1b[${rows}A` : '')

interface LineEnds {
  field: Field
  stdin: Stdin
  /** A text but for its last character. */
  withoutLast(text: string): string
}

/** Edits a line as a terminal does that is not raw. */
async function readLine(keyboard: Keyboard, { field, stdin, withoutLast }: LineEnds): Promise<string> {
  let typed = ''
  for (;;) {
    const key = await readKey(keyboard)
    if (key === '\r' || key === '\n') return typed
    if (key === undefined || (key === keys.end && typed === '')) throw new InputEnded()
    // The signal ends the process while this waits for the next key, and the cleanups restore the terminal.
    if (key === keys.interrupt) stdin.interrupt?.()
    else if (key === keys.suspend && stdin.suspend) await field.suspend()
    else if (key === pasted.begin) typed += await readPasted(keyboard, stdin)
    else if (key === keys.backspace || key === keys.delete) typed = withoutLast(typed)
    else if (key === keys.clear) typed = ''
    else if (key === keys.clearWord) typed = withoutWord(typed)
    else if (!/\p{Cc}/u.test(key)) typed += key
    field.show(typed)
  }
}

/** A character, or the sequence that a key without one sends. */
async function readKey(keyboard: Keyboard): Promise<string | undefined> {
  const first = await keyboard.read()
  if (first !== '\x1b') return first
  let sequence = first
  do {
    const char = await keyboard.read()
    // A control character is a key of its own, after Esc alone, too.
    if (char === undefined || char < ' ') return char
    sequence += char
  } while (!/^\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^[O])/s.test(sequence))
  return sequence
}

/** All up to the end of what is pasted: its lines do not end the answer. */
async function readPasted(keyboard: Keyboard, stdin: Stdin): Promise<string> {
  let text = ''
  for (;;) {
    const key = await readKey(keyboard)
    if (key === undefined) throw new InputEnded()
    if (key === pasted.end) return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n')
    if (key === keys.interrupt) stdin.interrupt?.()
    else if (/^[\n\r\t]$|^\P{Cc}/u.test(key)) text += key
  }
}

function withoutWord(text: string): string {
  const words = text.trimEnd()
  return words.slice(0, words.lastIndexOf(' ') + 1)
}

/** Bracketed paste: a terminal that was asked to marks what is pasted. */
const pasted = { areMarked: '\x1b[?2004h', areNot: '\x1b[?2004l', begin: '\x1b[200~', end: '\x1b[201~' }

const keys = {
  interrupt: '\x03',
  end: '\x04',
  backspace: '\b',
  clear: '\x15',
  clearWord: '\x17',
  suspend: '\x1a',
  delete: '\x7f',
}
