import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import { toOneLine } from '../../io/escape.ts'
import { createPrompter, InputEndedError, type Prompter } from '../../io/question.ts'
import { DenyMessage, maxDenyMessageLength } from '../../wire/sessions/send-events.ts'
import { estimateColumns, quoteAndShortenName } from '../quoted-name.ts'
import { formatToolUse } from './tool-use-text.ts'

interface PromptedToolUse {
  id: string
  name: string
  text: string
  mismatchReason?: string | undefined
  /**
   * Text that is equal for calls of the same tool with the same input. If omitted, the prompt does not offer
   * the key `a` (always allow).
   */
  sameCallKey?: string | undefined
}

/** Rows that show the id, the tool and the start of the input. */
const repeatedRows = 8
/** Rows before and after the tool use on a terminal of 80 columns: its number, the legend and the question. */
const legendRows = 4

interface PersonDecision {
  decision: 'allow' | 'deny'
  reason?: string
}

export const canPrompt = ({ input, host }: Context): boolean =>
  input.stdinKind === 'terminal' && host.stderr.isTerminal

export function describePromptObstacle({ input, host }: Context): string {
  if (!input.readsStdin && host.stderr.isTerminal) return 'with --no-stdin, parley cannot prompt'
  const name = host.stderr.isTerminal ? 'stdin' : 'stderr'
  return `${name} is not a terminal, so parley cannot prompt; to be prompted, connect ${name} to the terminal`
}

export class ConfirmationPrompt {
  readonly #context: Context
  readonly #inspectCommand: string
  #prompter: Prompter | undefined
  readonly #alwaysAllowed = new Set<string>()
  #decisions = new Map<string, PersonDecision>()
  #shownCount = 0
  #isAsking = false
  readonly #withdrawn = new Set<string>()
  #open: { id: string; end: AbortController } | undefined

  constructor(context: Context, inspectCommand: string) {
    this.#context = context
    this.#inspectCommand = inspectCommand
  }

  /**
   * Prompts for one tool use after another. Returns the decisions by tool use id. A tool use gets no decision
   * if the person skips it, if `withdraw` is called, or if parley cannot display it. After `q` or Ctrl-D, the
   * remaining tool uses get no decision either.
   */
  async ask(uses: readonly PromptedToolUse[]): Promise<ReadonlyMap<string, PersonDecision>> {
    this.#decisions = new Map()
    this.#withdrawn.clear()
    const shown = uses.flatMap((use) => this.#format(use) ?? [])
    this.#shownCount = shown.length
    this.#isAsking = true
    try {
      await this.#askEach(shown)
    } catch (error) {
      // Closes the open question, so that the next message begins on a new line.
      this.#prompter?.close()
      throw error
    } finally {
      this.#isAsking = false
    }
    return this.#decisions
  }

  /**
   * If the work fails, or if a signal ends the program during the work, parley prints that decisions are lost.
   * `isUnsent` returns whether the decision about a tool use is lost. If omitted, all decisions are lost.
   */
  reportLostDuring<T>(
    work: () => Promise<T>,
    isUnsent: (id: string, failure?: CliError) => boolean = () => true,
  ): Promise<T> {
    const describeLost = (failure?: CliError) => {
      const { length } = [...this.#decisions.keys()].filter((id) => isUnsent(id, failure))
      const which = this.#shownCount === 1 ? '' : ` to ${length} of ${this.#shownCount} tool uses`
      return length > 0 ? `your answer${which} was not sent` : undefined
    }
    const onInterrupt = () => {
      const lost = describeLost()
      return lost && this.#isAsking ? `${lost} (q sends the answers so far)` : lost
    }
    const explain = (failure: CliError) => {
      const lost = describeLost(failure)
      return lost === undefined ? failure : failure.with({}, `${failure.message}; ${lost}`)
    }
    return this.#context.tracker.during({ onInterrupt, explain }, work)
  }

  /**
   * Closes the question about a tool use. If the person has already answered it and `ask` has not returned
   * yet, drops the answer too.
   */
  withdraw(id: string): void {
    this.#withdrawn.add(id)
    this.#decisions.delete(id)
    if (this.#open?.id === id) this.#open.end.abort()
  }

  close(): void {
    this.#prompter?.close()
  }

  #format(use: PromptedToolUse) {
    try {
      return { use, rows: formatToolUse(use.id, use.text, this.#columns) }
    } catch (error) {
      if (!(error instanceof CliError)) throw error
      this.#context.messages.warn(
        `${quoteAndShortenName(use.id)} cannot be displayed: ${error.message}; to read it, use '${this.#inspectCommand} --raw'`,
      )
      return undefined
    }
  }

  async #askEach(shown: readonly { use: PromptedToolUse; rows: string }[]): Promise<void> {
    for (const [index, { use, rows }] of shown.entries()) {
      if (this.#withdrawn.has(use.id)) continue
      if (use.sameCallKey !== undefined && this.#alwaysAllowed.has(use.sameCallKey)) {
        this.#context.messages.note(`${use.id} is allowed, because you chose to always allow this call`)
        this.#decisions.set(use.id, { decision: 'allow' })
        continue
      }
      this.#print(`parley: tool use ${index + 1} of ${shown.length}:\n${rows}${this.#repeatStart(rows)}`)
      if (use.mismatchReason !== undefined) this.#printWrapped(`  ${toOneLine(use.mismatchReason)}`)
      if (!this.#prompter) this.#printWrapped(formatLegend(use))
      const answer = await this.#ask(use)
      if (answer === 'quit') return
      if (answer === 'open' || this.#withdrawn.has(use.id)) continue
      if (answer === 'always' && use.sameCallKey !== undefined) this.#alwaysAllowed.add(use.sameCallKey)
      this.#decisions.set(use.id, answer === 'always' ? { decision: 'allow' } : answer)
    }
  }

  async #ask(use: PromptedToolUse): Promise<Answer> {
    this.#prompter ??= createPrompter(this.#context)
    const end = new AbortController()
    this.#open = { id: use.id, end }
    const question = `  allow ${this.#context.messages.style.bold(formatToolAndId(use, this.#columns))}? ${formatKeys(use)} `
    try {
      for (;;) {
        const answer = parseAnswer(
          await this.#prompter.prompt(question, { takesLines: true, signal: end.signal }),
        )
        if (answer === 'too long')
          this.#printWrapped(`  the reason has more than ${maxDenyMessageLength} characters`)
        else if (answer === undefined || (answer === 'always' && use.sameCallKey === undefined))
          this.#printWrapped(formatLegend(use))
        else return answer
      }
    } catch (error) {
      if (end.signal.aborted) return 'open'
      if (error instanceof InputEndedError) return 'quit'
      throw error
    } finally {
      this.#open = undefined
    }
  }

  /** Repeats the first rows of a tool use that is longer than the window, because they have scrolled away. */
  #repeatStart(text: string): string {
    const rows = text.split(/(?<=\n)/)
    if (rows.length + legendRows <= (this.#context.host.stderr.rows || Infinity)) return ''
    const start = rows.slice(0, repeatedRows)
    return `parley: this tool use has ${rows.length} rows; the first ${start.length} again:\n${start.join('')}`
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
 * Answer that a person typed. `open`: leave the tool use open. `quit`: leave this and all later tool uses
 * open. `always`: allow this and all later calls of the tool with this input.
 */
type Answer = PersonDecision | 'always' | 'open' | 'quit'

const formatKeys = ({ sameCallKey }: PromptedToolUse) => (sameCallKey ? '[y/n/a/s/q]' : '[y/n/s/q]')

function formatLegend({ sameCallKey }: PromptedToolUse): string {
  const always = sameCallKey === undefined ? '' : ' a allow this same call until this run ends,'
  return `  y allow, n deny, n REASON deny with a reason,${always} s leave it open, q stop asking`
}

function parseAnswer(typed: string): Answer | 'too long' | undefined {
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
 * Returns the name of a tool use for its question. The question must fit on one row. A second row would begin
 * with text of the service, which could look like output of parley.
 */
function formatToolAndId(use: PromptedToolUse, columns: number): string {
  const { id, name } = use
  const room = columns - `  allow  ()? ${formatKeys(use)} yes`.length
  // With fewer columns, a name or id would be only an ellipsis, so the question has neither.
  if (room < 8) return 'it'
  const shownId = quoteAndShortenName(id, room >> 1)
  return `${quoteAndShortenName(name, room - estimateColumns(shownId))} (${shownId})`
}
