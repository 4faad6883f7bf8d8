import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import { createPrompter, InputEnded, type Prompter } from '../../io/question.ts'
import { DenyMessage, longestDenyMessage } from '../../wire/sessions/send-events.ts'
import { briefly, columnsOf } from '../plain-name.ts'
import { showToolUse } from './shown-use.ts'

/** A tool use that a person is asked about. */
export interface AskedUse {
  id: string
  name: string
  /** The whole event as it is spelled. */
  text: string
  /** Why no rule allowed it. */
  why?: string | undefined
}

interface ShownUse extends AskedUse {
  /** All that is known of it. */
  rows: string
}

/** What a person says about a tool use. A reason is for the agent. */
export interface Verdict {
  decision: 'allow' | 'deny'
  reason?: string
}

/** Whether there is somebody to ask. */
export const canAsk = ({ input, host }: Context): boolean =>
  input.stdinKind === 'terminal' && host.stderr.isTerminal

/** Asks a person about tool uses, and shows all that is known of them. */
export class Asker {
  readonly #context: Context
  /** The command that shows the session. */
  readonly #look: string
  #questioner: Prompter | undefined
  /** What was said about the tool uses of this round, by id. */
  #verdicts = new Map<string, Verdict>()
  /** Why a tool use is no longer asked about, until a person was told. */
  readonly #withdrawn = new Map<string, string>()
  /** The question that waits for its answer. */
  #open: { id: string; end: AbortController } | undefined

  constructor(context: Context, look: string) {
    this.#context = context
    this.#look = look
  }

  /**
   * Asks about each tool use in turn and returns the verdicts, by id. There is none for a tool use that is left open, was
   * withdrawn, cannot be shown whole, or comes after the end of the input (Ctrl-D) or q. A signal says that the verdicts so
   * far are lost.
   */
  async ask(uses: readonly AskedUse[]): Promise<ReadonlyMap<string, Verdict>> {
    const verdicts = new Map<string, Verdict>()
    this.#verdicts = verdicts
    this.#withdrawn.clear()
    const shown = uses.flatMap((use) => this.#show(use) ?? [])
    const lost = () =>
      verdicts.size > 0 ? `your answer to ${verdicts.size} of ${shown.length} tool uses is lost` : undefined
    try {
      await this.#context.calls.sayFirst(lost, () => this.#askEach(shown))
    } catch (error) {
      // The next message must not begin beside an open question.
      this.#questioner?.close()
      const words = lost()
      throw error instanceof CliError && words !== undefined
        ? new CliError(error.kind, `${error.message}; ${words}`, error.details)
        : error
    }
    return verdicts
  }

  /** Takes a question back, and its verdict if `ask` has not returned yet. `why` is a sentence about the tool use. */
  withdraw(id: string, why: string): void {
    this.#withdrawn.set(id, why)
    this.#verdicts.delete(id)
    if (this.#open?.id === id) this.#open.end.abort()
  }

  /** Whether a person was told that the question is taken back. */
  hasWithdrawn(id: string): boolean {
    return this.#withdrawn.get(id) === ''
  }

  /** Releases the terminal. */
  close(): void {
    this.#questioner?.close()
  }

  #show(use: AskedUse): ShownUse | undefined {
    try {
      return { ...use, rows: showToolUse(use.id, use.text, this.#columns) }
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      this.#context.warn(
        `${use.id} is not asked about: ${error.message}; look at it with '${this.#look} --raw'`,
      )
      return undefined
    }
  }

  async #askEach(uses: readonly ShownUse[]): Promise<void> {
    for (const [index, use] of uses.entries()) {
      if (this.#withdrawn.has(use.id)) continue
      this.#print(`parley: tool use ${index + 1} of ${uses.length}:\n${use.rows}`)
      if (use.why !== undefined) this.#say(`  ${oneLine(use.why)}`)
      if (!this.#questioner) this.#say(legend)
      const said = await this.#context.input.withinDeadline(this.#ask(use), 'a question was open')
      this.#tellWithdrawn()
      if (said === 'quit') return
      if (said !== 'open' && !this.#withdrawn.has(use.id)) this.#verdicts.set(use.id, said)
    }
  }

  async #ask(use: AskedUse): Promise<Verdict | 'open' | 'quit'> {
    const { host, cleanups, style } = this.#context
    this.#questioner ??= createPrompter({ ...host, cleanups })
    const end = new AbortController()
    this.#open = { id: use.id, end }
    const question = `  allow ${style.bold(nameBriefly(use, this.#columns))}? ${keys} `
    try {
      for (;;) {
        const said = readVerdict(await this.#questioner.prompt(question, { signal: end.signal }))
        if (said === 'too long') this.#say(`  the reason has more than ${longestDenyMessage} characters`)
        else if (said === undefined) this.#say(legend)
        else return said
      }
    } catch (error) {
      if (end.signal.aborted) return 'open'
      if (error instanceof InputEnded) return 'quit'
      throw error
    } finally {
      this.#open = undefined
    }
  }

  /** Between two questions: a line beside an open one would look like what was typed. */
  #tellWithdrawn(): void {
    for (const [id, why] of this.#withdrawn) {
      if (why !== '') this.#context.warn(`${id} is not answered: ${why}`)
      this.#withdrawn.set(id, '')
    }
  }

  get #columns(): number {
    return this.#context.host.stderr.columns || 80
  }

  #say(line: string): void {
    this.#print(`${this.#context.wrap(line)}\n`)
  }

  #print(text: string): void {
    this.#context.host.stderr.open().write(text)
  }
}

const keys = '[y/n/s/q]'

const legend = '  y allow, n deny, n REASON deny and say why, s leave it open, q stop asking'

/** `undefined` if it is not an answer. */
function readVerdict(typed: string): Verdict | 'open' | 'quit' | 'too long' | undefined {
  const [, word = '', reason = ''] = /^(\S+)\s*(.*)$/s.exec(typed) ?? []
  if (/^no?$/i.test(word)) {
    if (!DenyMessage().safeParse(reason).success) return 'too long'
    return reason === '' ? { decision: 'deny' } : { decision: 'deny', reason }
  }
  if (reason !== '') return undefined
  if (/^(y|yes)$/i.test(word)) return { decision: 'allow' }
  if (/^(s|skip)$/i.test(word)) return 'open'
  return /^(q|quit)$/i.test(word) ? 'quit' : undefined
}

/** A tool use in its question. If the terminal wrapped the question, a row would begin with the service's text. */
function nameBriefly({ id, name }: AskedUse, columns: number): string {
  const room = columns - `  allow  ()? ${keys} yes`.length
  // Both need room for a character and the sign that something is left out.
  if (room < 8) return 'it'
  const shownId = briefly(id, room >> 1)
  return `${briefly(name, room - columnsOf(shownId))} (${shownId})`
}
