import type { Context } from '../../context.ts'
import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { Audit } from './audit.ts'
import { describeCall, describeVerdict, type Verdict } from './verdict.ts'

/** What was decided and done in a run: in the audit, for a person, and in numbers. */
export class Record {
  readonly #context: Context
  readonly #audit: Audit
  readonly #denied: Verdict[] = []
  readonly #unasked: Verdict[] = []
  #allowed = 0
  #run = 0
  #turns = 0

  constructor(context: Context, audit: Audit) {
    this.#context = context
    this.#audit = audit
  }

  /** Counts how often the session stopped. */
  addTurns(items: readonly EventItem[]): void {
    for (const { event } of items) if (event.type === 'session.status_idle') this.#turns++
  }

  addVerdict(verdict: Verdict): void {
    if (verdict.decision === 'allow') this.#allowed++
    if (verdict.decision === 'deny') this.#denied.push(verdict)
    if (this.#context.host.stderr.isTerminal) this.#context.note(describeVerdict(verdict))
  }

  /** A tool use that was denied, and ran. */
  addUnasked(verdict: Verdict): void {
    this.#audit.add({ ...entryOf(verdict), event: 'not-asked' })
    this.#unasked.push(verdict)
    this.#context.warn(
      `the policy denies a tool use that the service ran without asking: ${describeCall(verdict.call)}`,
    )
  }

  /** A command was run. */
  addRun(): void {
    this.#run++
  }

  /** The last line of a run, on a terminal. */
  showSum(): void {
    const { host, note, timers, start } = this.#context
    if (!host.stderr.isTerminal) return
    const seconds = Math.max(0, (timers.now() - start) / 1000).toFixed(1)
    const turns = `${this.#turns} ${this.#turns === 1 ? 'turn' : 'turns'}`
    const tools = `tools: ${this.#allowed} allowed, ${this.#denied.length} denied, ${this.#run} run here`
    note(`${turns}; ${tools}; ${seconds} s`)
  }

  /** Why a run that went well is no success. */
  failure(session: string): CliError | undefined {
    const all = [...this.#denied, ...this.#unasked]
    if (all.length === 0) return undefined
    const count = ({ length }: Verdict[]) => `${length} tool ${length === 1 ? 'use' : 'uses'}`
    const what = [
      ...(this.#denied.length > 0 ? [`${count(this.#denied)} denied`] : []),
      ...(this.#unasked.length > 0 ? [`${count(this.#unasked)} that ran unasked although denied`] : []),
    ]
    return new CliError('denied', `${session} ended its turn with ${what.join(', and with ')}`, {
      sent: 'yes',
      safeToRetry: false,
      problems: all.map(describeVerdict),
    })
  }
}

/** What the audit has of it. */
export const entryOf = ({ call, decision, by, rule, reason }: Verdict) => ({
  toolUse: call.id,
  name: call.name,
  input: call.inputText,
  decision,
  by,
  rule,
  reason,
})
