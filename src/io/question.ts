import type { Interface } from 'node:readline'
import { type Readable, Writable } from 'node:stream'
import type { BasicContext, Stdin } from '../basic-context.ts'
import { CliError, createNotSentDeadlineError } from '../errors.ts'
import type { MessagePrinter } from './messages.ts'

export interface Prompter {
  /**
   * Drops keys that were typed before the question. Throws `InputEndedError` at the end of the input (Ctrl-D).
   */
  prompt(question: string, options?: QuestionOptions): Promise<string>
  /** Withdraws an open question. Later calls of `prompt` reject. */
  close(): void
}

interface QuestionOptions {
  /** If true, the terminal does not show the answer. The default of `takesLines` is then true. */
  isHidden?: boolean
  /**
   * If true, the answer has all lines of a pasted text. Otherwise it is the first line. In a hidden answer, nobody
   * would see that lines are missing.
   */
  takesLines?: boolean
  /** Aborting rejects `prompt` with the signal's reason and drops the typed part of the answer. */
  signal?: AbortSignal | undefined
}

export class InputEndedError extends CliError {
  constructor() {
    super('usage', 'the input ended before the question was answered')
  }
}

interface PrompterContext extends BasicContext {
  messages: MessagePrinter
}

const deadlineText = 'the deadline passed while a question was open'

/** Codes for bracketed paste: the terminal then marks the start and the end of pasted text. */
const [pasteMarksOn, pasteMarksOff] = ['\x1b[?2004h', '\x1b[?2004l']

export function withPrompter<T>(
  options: PrompterContext,
  work: (prompter: Prompter) => Promise<T>,
): Promise<T> {
  const prompter = createPrompter(options)
  return work(prompter).finally(prompter.close)
}

export async function askYesNo(prompter: Prompter, question: string, byDefault = false): Promise<boolean> {
  const typed = await prompter.prompt(`${question} `).catch((error: unknown) => {
    if (error instanceof InputEndedError) return 'no'
    throw error
  })
  return typed === '' ? byDefault : /^y(es)?$/i.test(typed)
}

export function createPrompter({ host, messages, cleanups, deadline }: PrompterContext): Prompter {
  const { stdin, stderr, env } = host
  const closing = new AbortController()
  const write = (text: string) => void stderr.open().write(text)
  let keys: Readable | undefined

  async function prompt(
    question: string,
    { isHidden = false, takesLines = isHidden, signal }: QuestionOptions = {},
  ): Promise<string> {
    const { createInterface } = await import('node:readline')
    keys ??= stdin.open()
    const input = keys
    const late = new AbortController()
    const cancelDeadline = deadline.onPass(() => late.abort(createNotSentDeadlineError(deadlineText)))
    const withdrawal = AbortSignal.any([closing.signal, late.signal, ...(signal ? [signal] : [])])
    const isEdited = stdin.setRaw !== undefined && (isHidden || stderr.isTerminal)
    const marksPastes = isEdited && stderr.isTerminal && takesLines && env.TERM !== 'dumb'
    let editor: Interface | undefined
    let isOpen = true
    let isLineOpen = false
    let isMarking = false
    const setEdited = (isOn: boolean) => {
      if (marksPastes && isOn !== isMarking) write(isOn ? pasteMarksOn : pasteMarksOff)
      isMarking = isOn
      try {
        stdin.setRaw?.(isOn && isEdited)
      } catch (error) {
        // If the window of the terminal was closed, leaving raw mode fails, and the failure is ignored.
        if (isOn) throw error
      }
    }
    const release = (): boolean => {
      if (!isOpen) return false
      isOpen = false
      cleanups.delete(release)
      editor?.close()
      setEdited(false)
      if (isLineOpen) write('\n')
      messages.release()
      return isLineOpen
    }
    cleanups.add(release)
    messages.hold()
    try {
      withdrawal.throwIfAborted()
      if (input.destroyed) throw new InputEndedError()
      // Raw mode hides typed keys before the question is shown, so even a quick answer stays hidden.
      stdin.setRaw?.(true)
      if (stdin.setRaw) await dropTyped(input, stdin)
      withdrawal.throwIfAborted()
      if (input.readableEnded) throw new InputEndedError()
      setEdited(true)
      return await new Promise<string>((resolve, reject) => {
        const end = () => reject(new InputEndedError())
        // At the end of the input, Node takes an unfinished line as the answer. This listener runs before
        // Node's listener and rejects the prompt.
        input.once('end', end)
        withdrawal.addEventListener('abort', () => {
          reject(withdrawal.reason)
          release()
        })
        const output = isHidden ? new Writable({ write: (_, _encoding, done) => done() }) : stderr.open()
        const lines: string[] = []
        let isInPaste = false
        const readMark = (_: unknown, { name }: { name?: string }) => {
          if (name === 'paste-start' || name === 'paste-end')
            isInPaste = marksPastes && name === 'paste-start'
        }
        input.on('keypress', readMark)
        const prompted = createInterface({
          input,
          output,
          prompt: question,
          terminal: isEdited,
          historySize: 0,
        })
        editor = prompted
        // On a resize, Node prints the question again. A terminal that has reflowed the question into more rows
        // would show its first row twice. So parley removes Node's listener.
        output.removeAllListeners('resize')
        // After a resize, Node erases as many rows as the answer had before. The terminal may have reflowed
        // the answer into fewer rows, and Node would then erase the text above. So Node gets the smaller
        // number of rows.
        const limitErasedRows = () => {
          const { prevRows = 0 } = prompted as { prevRows?: number }
          Object.assign(prompted, { prevRows: Math.min(prevRows, prompted.getCursorPos().rows) })
        }
        output.on('resize', limitErasedRows)
        const show = () => {
          isLineOpen = true
          if (isHidden) write(question)
          else prompted.prompt()
        }
        prompted.on('line', (line) => {
          lines.push(line)
          if (isInPaste) {
            // Node prints its prompt before each pasted line. For later lines, the prompt is an indent
            // instead of the question.
            prompted.setPrompt('    ')
            prompted.prompt()
            return
          }
          // Node's line editor has already printed the line break after the answer.
          if (isEdited && !isHidden) isLineOpen = false
          resolve(lines.join('\n').trim())
        })
        prompted.once('close', () => {
          input.off('keypress', readMark)
          output.off('resize', limitErasedRows)
          input.off('end', end)
          end()
        })
        // An error means that the window of the terminal was closed.
        prompted.on('error', end)
        prompted.on('SIGINT', () => stdin.interrupt?.())
        // Node would suspend only this process and not the other processes of the pipeline, so parley handles
        // Ctrl-Z itself.
        prompted.on('SIGTSTP', () => {
          if (!stdin.suspend) return
          lines.length = 0
          prompted.setPrompt(question)
          for (const name of ['e', 'u']) prompted.write(null, { ctrl: true, name })
          setEdited(false)
          write('\n')
          stdin.suspend()
          setEdited(true)
          show()
        })
        show()
      })
    } finally {
      cancelDeadline()
      release()
    }
  }

  return { prompt, close: () => closing.abort(new InputEndedError()) }
}

/** After a pause of this length, all keys that were typed earlier have arrived. */
const typingPauseMs = 50

/** Needs raw mode, because a terminal otherwise delivers only complete lines. */
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
