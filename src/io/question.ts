import { usage } from '../errors.ts'
import type { Stdin } from './input.ts'
import type { StdStream } from './output.ts'

/** Asks the person on a terminal, one question after the other. */
export interface Questioner {
  /**
   * Resolves with the typed line; a hidden one is not shown, and to a grave one nothing counts that was typed before it
   * was asked. Throws a usage error where the input ends (Ctrl-D).
   */
  ask(question: string, options?: { isHidden?: boolean; isGrave?: boolean }): Promise<string>
  /** Lets go of the terminal: the process need not wait for it. */
  close(): Promise<void>
}

export interface QuestionerOptions {
  stdin: Stdin
  stderr: StdStream
  /** Holds, while a terminal is raw, what restores it. */
  cleanups: Set<() => void>
}

export function createQuestioner({ stdin, stderr, cleanups }: QuestionerOptions): Questioner {
  const stream = stdin.open()
  const chunks = stream[Symbol.asyncIterator]()
  let coming: Promise<IteratorResult<Uint8Array>> | undefined
  const decoder = new TextDecoder()
  /** Typed ahead, or pasted as more than one line. */
  let ahead = ''

  /** One character, or `undefined` at the end of the input. */
  async function read(): Promise<string | undefined> {
    while (ahead === '') {
      coming ??= chunks.next()
      const { done, value } = await coming
      coming = undefined
      if (done) return undefined
      ahead = decoder.decode(value, { stream: true })
    }
    const char = String.fromCodePoint(ahead.codePointAt(0) as number)
    ahead = ahead.slice(char.length)
    return char
  }

  /** What was typed before a question was there is no answer to it. */
  async function dropTyped(): Promise<void> {
    if (!stdin.isLive) return
    for (let isQuiet = false; !isQuiet; ) {
      ahead = ''
      coming ??= chunks.next()
      const pause = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 50))
      const next = await Promise.race([coming, pause])
      isQuiet = next === undefined || next.done === true
      if (!isQuiet) coming = undefined
    }
  }

  /** A line as a terminal delivers it by itself, edited and complete. */
  async function readLine(): Promise<string> {
    let line = ''
    for (;;) {
      const char = await read()
      if (char === undefined) {
        stderr.open().write('\n')
        throw ended()
      }
      if (char === '\n') return line
      line += char
    }
  }

  async function askHidden(question: string): Promise<string> {
    const restore = () => {
      stdin.setRaw?.(false)
      stderr.open().write('\n')
      cleanups.delete(restore)
    }
    const hide = () => {
      // Before the question is there: whoever answers it at once is not to see the answer either.
      stdin.setRaw?.(true)
      cleanups.add(restore)
      stderr.open().write(question)
    }
    hide()
    try {
      return await readKeys(async () => {
        restore()
        await stdin.suspend?.()
        hide()
      })
    } finally {
      restore()
    }
  }

  async function readKeys(suspend: () => Promise<void>): Promise<string> {
    let typed: string[] = []
    for (;;) {
      const key = await read()
      if (key === '\r' || key === '\n') return typed.join('').replace(sequences, '')
      if (key === undefined || (key === keys.end && typed.length === 0)) throw ended()
      // The signal ends the process while the next key is waited for, and the cleanups restore the terminal.
      if (key === keys.interrupt) stdin.interrupt?.()
      else if (key === keys.suspend) await suspend()
      else if (key === keys.backspace || key === keys.delete) typed.pop()
      else if (key === keys.clear) typed = []
      else typed.push(key)
    }
  }

  return {
    async ask(question, { isHidden = false, isGrave = false } = {}) {
      if (isGrave) await dropTyped()
      if (isHidden) return (await askHidden(question)).trim()
      stderr.open().write(question)
      return (await readLine()).trim()
    },
    async close() {
      if (coming) stream.destroy()
      else await chunks.return?.()
    },
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
