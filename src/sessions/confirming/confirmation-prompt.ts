import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import { createPrompter, InputEnded, type Prompter } from '../../io/question.ts'
import { DenyMessage, maxDenyMessageLength } from '../../wire/sessions/send-events.ts'
import { estimateColumns, formatBriefName } from '../plain-name.ts'
import { showToolUse } from './shown-tool-use.ts'

/** A tool use about which a person decides. */
export interface PromptedToolUse {
  id: string
  name: string
  /** Source text of the whole event. */
  text: string
  /** Why no rule allowed the tool use. */
  why?: string | undefined
  /**
   * Key that is equal for calls of the same tool with the same input. If omitted, the key `a` is not offered.
   */
  call?: string | undefined
}

interface ShownToolUse extends PromptedToolUse {
  /** The whole tool use, formatted as rows. */
  rows: string
}

/** A person's decision. The agent gets the reason. */
export interface Verdict {
  decision: 'allow' | 'deny'
  reason?: string
}

/** Returns whether a person can be prompted. */
export const canPrompt = ({ input, host }: Context): boolean =>
  input.stdinKind === 'terminal' && host.stderr.isTerminal

/** Prompts a person about tool uses and shows each of them completely. */
export class ConfirmationPrompt {
  readonly #context: Context
  /** Command that lists the session's events. */
  readonly #inspectCommand: string
  #prompter: Prompter | undefined
  /** Keys of the calls that the person always allows. */
  readonly #alwaysAllowed = new Set<string>()
  /** Decisions of the current call of `ask`, by tool use id. */
  #verdicts = new Map<string, Verdict>()
  /** Reasons of withdrawn questions, by tool use id. A reason becomes empty once it is printed. */
  readonly #withdrawn = new Map<string, string>()
  /** The open question. */
  #open: { id: string; end: AbortController } | undefined

  constructor(context: Context, inspectCommand: string) {
    this.#context = context
    this.#inspectCommand = inspectCommand
  }

  /**
   * Prompts for each tool use in turn. Returns the decisions by tool use id. A tool use gets no decision if
   * the person skipped it, if its question was withdrawn, or if it cannot be printed completely. After q or
   * the end of the input (Ctrl-D), the remaining tool uses get no decision either. If a signal ends the run,
   * a message says that the decisions are lost.
   */
  async ask(uses: readonly PromptedToolUse[]): Promise<ReadonlyMap<string, Verdict>> {
    const verdicts = new Map<string, Verdict>()
    this.#verdicts = verdicts
    this.#withdrawn.clear()
    const shown = uses.flatMap((use) => this.#show(use) ?? [])
    const describeLost = () =>
      verdicts.size > 0
        ? `your answer to ${verdicts.size} of ${shown.length} tool uses was not sent`
        : undefined
    const describeInterrupted = () => {
      const lost = describeLost()
      return lost && `${lost} (q sends the answers so far)`
    }
    const explain = (failure: CliError) => {
      // Closes the open question, so that the next message begins on its own line.
      this.#prompter?.close()
      const words = describeLost()
      return words === undefined ? failure : failure.with({}, `${failure.message}; ${words}`)
    }
    await this.#context.endings.during({ words: describeInterrupted, explain }, () => this.#askEach(shown))
    return verdicts
  }

  /**
   * Withdraws a question, or its decision if `ask` has not returned yet. `why` is printed after the tool
   * use's id.
   */
  withdraw(id: string, why: string): void {
    this.#withdrawn.set(id, why)
    this.#verdicts.delete(id)
    if (this.#open?.id === id) this.#open.end.abort()
  }

  /** Returns whether the withdrawal of a question was printed. */
  hasPrintedWithdrawal(id: string): boolean {
    return this.#withdrawn.get(id) === ''
  }

  /** Releases the terminal. */
  close(): void {
    this.#prompter?.close()
  }

  #show(use: PromptedToolUse): ShownToolUse | undefined {
    try {
      return { ...use, rows: showToolUse(use.id, use.text, this.#columns) }
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      this.#context.messages.warn(
        `${use.id} cannot be displayed: ${error.message}; to read it, use '${this.#inspectCommand} --raw'`,
      )
      return undefined
    }
  }

  async #askEach(uses: readonly ShownToolUse[]): Promise<void> {
    for (const [index, use] of uses.entries()) {
      if (this.#withdrawn.has(use.id)) continue
      if (use.call !== undefined && this.#alwaysAllowed.has(use.call)) {
        this.#context.messages.note(`${use.id} is the same call as before: allowed`)
        this.#verdicts.set(use.id, { decision: 'allow' })
        continue
      }
      this.#print(`parley: tool use ${index + 1} of ${uses.length}:\n${use.rows}`)
      if (use.why !== undefined) this.#printWrapped(`  ${oneLine(use.why)}`)
      if (!this.#prompter) this.#printWrapped(formatLegend(use))
      const answer = await this.#context.input.withinDeadline(this.#ask(use), 'a question was open')
      this.#reportWithdrawn()
      if (answer === 'quit') return
      if (answer === 'open' || this.#withdrawn.has(use.id)) continue
      if (answer === 'always' && use.call !== undefined) this.#alwaysAllowed.add(use.call)
      this.#verdicts.set(use.id, answer === 'always' ? { decision: 'allow' } : answer)
    }
  }

  async #ask(use: PromptedToolUse): Promise<Answer> {
    const { host, cleanups, messages } = this.#context
    this.#prompter ??= createPrompter({ ...host, cleanups })
    const end = new AbortController()
    this.#open = { id: use.id, end }
    const question = `  allow ${messages.style.bold(nameBriefly(use, this.#columns))}? ${getKeys(use)} `
    try {
      for (;;) {
        const answer = readVerdict(
          await this.#prompter.prompt(question, { takesLines: true, signal: end.signal }),
        )
        if (answer === 'too long')
          this.#printWrapped(`  the reason has more than ${maxDenyMessageLength} characters`)
        else if (answer === undefined || (answer === 'always' && use.call === undefined))
          this.#printWrapped(formatLegend(use))
        else return answer
      }
    } catch (error) {
      if (end.signal.aborted) return 'open'
      if (error instanceof InputEnded) return 'quit'
      throw error
    } finally {
      this.#open = undefined
    }
  }

  /**
   * Prints the reasons of withdrawn questions. Called between two questions, because a line next to an open
   * question would look like typed text.
   */
  #reportWithdrawn(): void {
    for (const [id, why] of this.#withdrawn) {
      if (why !== '') this.#context.messages.warn(`${id} is not answered: ${why}`)
      this.#withdrawn.set(id, '')
    }
  }

  get #columns(): number {
    return this.#context.host.stderr.columns || 80
  }

  #printWrapped(line: string): void {
    this.#print(`${this.#context.messages.wrap(line)}\n`)
  }

  #print(text: string): void {
    this.#context.host.stderr.open().write(text)
  }
}

/**
 * `open`: the tool use stays open. `quit`: this and all later tool uses stay open. `always`: equal calls are
 * allowed from now on.
 */
type Answer = Verdict | 'always' | 'open' | 'quit'

const getKeys = ({ call }: PromptedToolUse) => (call === undefined ? '[y/n/s/q]' : '[y/n/a/s/q]')

function formatLegend({ call }: PromptedToolUse): string {
  const always = call === undefined ? '' : ' a allow this same call from now on,'
  return `  y allow, n deny, n REASON deny and say why,${always} s leave it open, q stop asking`
}

/** Returns `undefined` for text that is not an answer. */
function readVerdict(typed: string): Answer | 'too long' | undefined {
  const [, word = '', reason = ''] = /^(\S+)\s*(.*)$/s.exec(typed) ?? []
  if (/^no?$/i.test(word)) {
    if (!DenyMessage().safeParse(reason).success) return 'too long'
    return reason === '' ? { decision: 'deny' } : { decision: 'deny', reason }
  }
  if (reason !== '') return undefined
  if (/^(y|yes)$/i.test(word)) return { decision: 'allow' }
  if (/^(a|always)$/i.test(word)) return 'always'
  if (/^(s|skip)$/i.test(word)) return 'open'
  return /^(q|quit)$/i.test(word) ? 'quit' : undefined
}

/**
 * Returns the name of a tool use for its question. The question must fit on one row, because a second row
 * would begin with text from the service.
 */
function nameBriefly(use: PromptedToolUse, columns: number): string {
  const { id, name } = use
  const room = columns - `  allow  ()? ${getKeys(use)} yes`.length
  // Both names need space for one character and the ellipsis, so a narrow terminal shows neither.
  if (room < 8) return 'it'
  const shownId = formatBriefName(id, room >> 1)
  return `${formatBriefName(name, room - estimateColumns(shownId))} (${shownId})`
}
