import type { Interface } from 'node:readline'
import { type Readable, Writable } from 'node:stream'
import type { ActiveSet } from '../active-set.ts'
import { CliError } from '../errors.ts'
import type { Stdin } from './input.ts'
import type { StdStream } from './output.ts'

/** Prompts a person on a terminal, one question at a time. */
export interface Prompter {
  /**
   * Resolves with the typed line. Of pasted lines only the first counts. Keys typed before the question are
   * dropped. Throws `InputEnded` if the input ends (Ctrl-D).
   */
  prompt(question: string, options?: QuestionOptions): Promise<string>
  /** Withdraws an open question and prompts no more. Later output begins on a new line. */
  close(): void
}

interface QuestionOptions {
  /** Hides the typed answer. */
  isHidden?: boolean
  /**
   * Withdraws the question: `prompt` rejects with the signal's reason and drops the typed part of the answer.
   */
  signal?: AbortSignal | undefined
}

/** The input ended before an answer. */
export class InputEnded extends CliError {
  constructor() {
    super('usage', 'the input ended before the question was answered')
  }
}

export interface PrompterOptions {
  stdin: Stdin
  stderr: StdStream
  /** While a question is open, one of these functions restores the terminal. */
  cleanups: ActiveSet<() => unknown>
}

/** Runs work that prompts the person. At its end no question stays open. */
export function withPrompter<T>(
  options: PrompterOptions,
  work: (questioner: Prompter) => Promise<T>,
): Promise<T> {
  const questioner = createPrompter(options)
  return work(questioner).finally(questioner.close)
}

export function createPrompter({ stdin, stderr, cleanups }: PrompterOptions): Prompter {
  const closing = new AbortController()
  const write = (text: string) => void stderr.open().write(text)
  let keys: Readable | undefined

  async function ask(question: string, { isHidden = false, signal }: QuestionOptions = {}): Promise<string> {
    const { createInterface } = await import('node:readline')
    keys ??= stdin.open()
    const input = keys
    const withdrawal = AbortSignal.any(signal ? [closing.signal, signal] : [closing.signal])
    const isEdited = stdin.setRaw !== undefined && (isHidden || stderr.isTerminal)
    let editor: Interface | undefined
    let isOpen = true
    let isLineOpen = false
    const release = (): boolean => {
      if (!isOpen) return false
      isOpen = false
      cleanups.delete(release)
      editor?.close()
      stdin.setRaw?.(false)
      if (isLineOpen) write('\n')
      return isLineOpen
    }
    cleanups.add(release)
    try {
      withdrawal.throwIfAborted()
      // Hides typed keys before the question is shown, so even a quick answer stays hidden.
      stdin.setRaw?.(true)
      if (stdin.setRaw) await dropTyped(input, stdin)
      withdrawal.throwIfAborted()
      if (input.readableEnded) throw new InputEnded()
      stdin.setRaw?.(isEdited)
      return await new Promise<string>((resolve, reject) => {
        const end = () => reject(new InputEnded())
        // Node accepts an unfinished line as an answer at the end of the input. This listener runs before
        // Node's listener and drops the line.
        input.once('end', end)
        withdrawal.addEventListener('abort', () => {
          reject(withdrawal.reason)
          release()
        })
        const output = isHidden ? new Writable({ write: (_, _encoding, done) => done() }) : stderr.open()
        editor = createInterface({
          input,
          output,
          prompt: question,
          terminal: isEdited,
          historySize: 0,
        })
        editor.once('line', (line) => {
          // Node's line editor has ended the line that it showed.
          if (isEdited && !isHidden) isLineOpen = false
          resolve(line.trim())
        })
        editor.once('close', () => {
          input.off('end', end)
          end()
        })
        editor.on('SIGINT', () => stdin.interrupt?.())
        // Node would suspend only this process and not the other processes of the pipeline, so Ctrl-Z has no
        // effect.
        editor.on('SIGTSTP', () => {})
        isLineOpen = true
        if (isHidden) write(question)
        else editor.prompt()
      })
    } finally {
      release()
    }
  }

  return { prompt: ask, close: () => closing.abort(new InputEnded()) }
}

/** After this pause, all keys typed earlier have arrived. */
const typingPauseMs = 50

/** Drops keys typed earlier. A raw terminal also delivers typed text that has no line end yet. */
function dropTyped(keys: Readable, { interrupt }: Stdin): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      keys.off('data', drop)
      keys.pause()
      resolve()
    }, typingPauseMs)
    function drop(typed: Buffer): void {
      timer.refresh()
      if (typed.includes('\x03')) interrupt?.()
    }
    keys.on('data', drop)
    keys.resume()
  })
}
