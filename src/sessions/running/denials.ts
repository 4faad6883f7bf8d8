import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { isToolUse, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { isTask } from '../following/followed-turn.ts'
import type { SessionState } from '../session-state.ts'
import { describeJudgement, findUnasked, type Judgement, type NotRun, type Rules } from './judgement.ts'

/**
 * The tool uses that were denied since the task: by this run, by an earlier one, as its audit says, or by another client, as
 * the session says. And those that the policy denies and the service ran without asking. A turn with any of these is not a
 * success, however often the run is started again.
 */
export class Denials {
  /** Tool uses that earlier runs denied, by id, in words. */
  readonly #earlier: ReadonlyMap<string, string>
  /** In words, by the id of the tool use: the denials of others, and those of this run. */
  readonly #byOthers = new Map<string, string>()
  readonly #byThisRun = new Map<string, string>()
  readonly #unasked = new Map<string, string>()
  /** Tool uses that the policy denies: those that have not run yet, and those that ran. */
  readonly #notRun: NotRun = { allowed: new Map(), others: new Map() }
  #ran: Judgement[] = []
  #beginsTurn: (task: SessionEvent) => boolean
  readonly #rules: Rules

  /** `own` are the ids of a task that an earlier run has sent: no other begins the turn. */
  constructor(rules: Rules, earlier: ReadonlyMap<string, string>, own: ReadonlySet<string> = new Set()) {
    this.#rules = rules
    this.#earlier = earlier
    this.#beginsTurn = ({ id = '' }) => own.size === 0 || own.has(id)
  }

  /** The run is about to send its task: nothing before it counts, and no other task begins the turn. */
  begin(): void {
    this.#clear()
    this.#beginsTurn = () => false
  }

  /** Adds events of the session, in their order. Throws a `CliError` if the deadline passes meanwhile. */
  async add(items: readonly EventItem[]): Promise<void> {
    for (const item of items) {
      this.#addEvent(item.event)
      if (!this.#earlier.has(item.event.id ?? ''))
        this.#ran.push(...(await findUnasked(this.#notRun, item, this.#rules)))
    }
  }

  /**
   * Takes the tool uses that ran without a reply. A stream may leave a reply out: only a list at a rest shows each of
   * them.
   */
  takeUnasked(state: SessionState, isListed: boolean): Judgement[] {
    const isKnown = ({ use }: Judgement) => isListed || use.permission === 'allow'
    const unasked = this.#ran.filter(
      (judgement) => isKnown(judgement) && !state.answerTo(judgement.use.id)?.isReply,
    )
    this.#ran = this.#ran.filter((judgement) => !isKnown(judgement))
    for (const judgement of unasked) this.#unasked.set(judgement.use.id, describeJudgement(judgement))
    return unasked
  }

  #addEvent(event: SessionEvent): void {
    const { id, type, tool_use_id: use, result } = event
    if (isTask(event) && this.#beginsTurn(event)) this.#clear()
    const earlier = isToolUse(event) && id !== undefined ? this.#earlier.get(id) : undefined
    if (id !== undefined && earlier !== undefined) this.#byOthers.set(id, earlier)
    if (type !== 'user.tool_confirmation' || typeof use !== 'string') return
    if (result !== 'deny') this.#byOthers.delete(use)
    else if (!this.#byOthers.has(use)) this.#byOthers.set(use, `deny ${use} (not by this run)`)
  }

  addDenied(judgement: Judgement): void {
    this.#byThisRun.set(judgement.use.id, describeJudgement(judgement))
  }

  /** The run did not send the denial. */
  forget(id: string): void {
    this.#byThisRun.delete(id)
  }

  /** Why a run that reached the end of the turn is not a success. */
  failure(session: string): CliError | undefined {
    const denied = new Map([...this.#byOthers, ...this.#byThisRun])
    const unasked = this.#unasked
    if (denied.size + unasked.size === 0) return undefined
    const count = ({ size }: Map<string, string>) => `${size} tool ${size === 1 ? 'use' : 'uses'}`
    const what = [
      ...(denied.size > 0 ? [`${count(denied)} denied`] : []),
      ...(unasked.size > 0 ? [`${count(unasked)} that ran unasked although denied`] : []),
    ]
    return new CliError('denied', `${session} ended its turn with ${what.join(', and with ')}`, {
      sent: 'yes',
      problems: [...denied.values(), ...unasked.values()],
    })
  }

  #clear(): void {
    this.#byOthers.clear()
    this.#byThisRun.clear()
    this.#unasked.clear()
    this.#notRun.allowed.clear()
    this.#notRun.others.clear()
    this.#ran = []
  }
}
