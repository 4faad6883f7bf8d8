import { CliError } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { type Asker, canAsk, describeDecision, type Verdict } from '../confirming/asker.ts'
import type { Follower } from '../following/follower.ts'
import { requireTime, timeLeft } from '../patience.ts'
import type { Decision } from '../policy/policy.ts'
import { confirmation, toolResult } from '../reply-events.ts'
import type { SessionAccess } from '../session.ts'
import type { Audit } from './audit.ts'
import type { Denials } from './denials.ts'
import {
  deciderOf,
  entryOf,
  type Judgement,
  judge,
  type Rules,
  readUse,
  type Use,
  waitsForResult,
} from './judgement.ts'
import { type GivenReply, Replies } from './replies.ts'
import { dutyOf } from './replying.ts'
import { runTool } from './tools.ts'

/** By whom and how the tool uses of a session are decided on and carried out. */
export interface ReplyRules extends Rules {
  /** How long a command may take. Milliseconds. */
  toolTimeout: number
  asker: Asker
}

/** Why an id that a person may answer is left to one. */
const answeredIds = 'rules answer only ids of 1 to 128 letters, digits, _ and -'

/** The waits before each look at a list that may lag. Milliseconds. */
const lags = [0, 250, 500, 1_000, 2_000]

/**
 * Replies to what a session waits for: by rules, by commands and by a person, one step at a time. It works beside the loop
 * that reads the session, which is never kept waiting by it, and asks for the newest state before each step.
 */
export class Actor {
  readonly #session: SessionAccess
  readonly #follower: Follower
  readonly #rules: ReplyRules
  readonly #denials: Denials
  readonly #replies: Replies
  /** Nothing may be begun any more: what waits is left open. */
  readonly #isStopped: () => boolean
  #isDismissed = false
  #work: Promise<void> | undefined
  #failure: { error: unknown } | undefined
  /** By id: one that the session asks for anew is decided again. */
  readonly #judgements = new Map<string, Judgement>()
  /** The tool uses that a person is asked about, and not withdrawn yet. */
  #asking: readonly Use[] = []
  readonly #counts = { run: 0, failed: 0 }

  constructor(
    session: SessionAccess,
    {
      follower,
      audit,
      rules,
      denials,
      isStopped,
    }: { follower: Follower; audit: Audit; rules: ReplyRules; denials: Denials; isStopped(): boolean },
  ) {
    this.#session = session
    this.#follower = follower
    this.#rules = rules
    this.#denials = denials
    this.#isStopped = () => this.#isDismissed || isStopped()
    this.#replies = new Replies(session, {
      follower,
      audit,
      isStopped: this.#isStopped,
      isTold: (id) => rules.asker.hasWithdrawn(id),
    })
    session.context.summary.toolUses = () => this.#toolUses()
  }

  /** The loop has read news, or none. Begins what they ask for, and withdraws a question that is over. Throws what failed. */
  see(items: readonly EventItem[]): void {
    if (this.#failure) throw this.#failure.error
    this.#withdraw()
    if (this.#work || this.#asked().length === 0) return
    const { state } = this.#follower
    state.attend(true)
    this.#work = this.#act()
      .catch((error: unknown) => {
        this.#failure = { error }
      })
      .finally(() => {
        this.#work = undefined
        state.attend(false)
        this.#follower.wake()
      })
  }

  /** Takes back what a person is asked that is no longer open. */
  #withdraw(): void {
    const over = this.#asking.filter((use) => this.#replies.whyOver(use) !== undefined)
    this.#asking = this.#asking.filter((use) => !over.includes(use))
    for (const use of over) {
      const why = this.#replies.whyOver(use)
      if (why !== undefined) this.#rules.asker.withdraw(use.id, why)
    }
  }

  /** The session is not followed any more: nothing is begun, and nobody is asked. */
  dismiss(): void {
    this.#isDismissed = true
    for (const { id } of this.#asking) this.#rules.asker.withdraw(id, 'the session is not followed any more')
    this.#asking = []
  }

  /** Waits until nothing is under way. Throws what failed. */
  async settle(): Promise<void> {
    do {
      await this.#work
      this.see([])
    } while (this.#work)
    if (!this.#isDismissed) return
    const undone = [...this.#judgements.values()].filter(({ use }) => this.#dutyOf(use.id) !== undefined)
    for (const { use } of this.#replies.leaveOver(undone)) this.#forget(use.id)
  }

  /** What was done in this run, in one line. */
  describe(): string {
    const { allowed, denied, run } = this.#toolUses()
    const { failed } = this.#counts
    const own = run > 0 ? `, ${run} run here` : ''
    return `tools: ${allowed} allowed, ${denied} denied${own}${failed > 0 ? `, ${failed} failed` : ''}`
  }

  #toolUses() {
    const countOf = (decision: Decision) =>
      [...this.#judgements.values()].filter((judgement) => judgement.decision === decision).length
    const open = this.#follower.state.asked.length
    return { allowed: countOf('allow'), denied: countOf('deny'), run: this.#counts.run, open }
  }

  /** The ids of the tool uses for which something is due. */
  #asked(): string[] {
    return this.#isStopped() ? [] : this.#follower.state.asked.filter((id) => this.#dutyOf(id) !== undefined)
  }

  #dutyOf(id: string): ReturnType<typeof dutyOf> {
    const reply = this.#replies.to(id)
    // The allowance is settled, and the result is asked for.
    const isNew = this.#follower.state.toolUse(id)?.wantsResult && !('result' in reply && reply.result)
    return isNew && (reply.is === 'settled' || reply.is === 'in-doubt') ? 'decide' : dutyOf(reply)
  }

  /** Replies to what waits until nothing is due. Throws a `CliError`. */
  async #act(): Promise<void> {
    for (let uses = await this.#due(); uses.length > 0; uses = await this.#due()) await this.#reply(uses)
  }

  async #reply(uses: readonly Use[]): Promise<void> {
    const due = (duty: ReturnType<typeof dutyOf>) => uses.filter(({ id }) => this.#dutyOf(id) === duty)
    const [results, doubts] = [due('post').flatMap((use) => this.#result(use)), due('look')]
    const judgements = await this.#decide(due('decide'))
    const atOnce = judgements.flatMap((judgement) => this.#replyAtOnce(judgement))
    await this.#post([...results, ...atOnce])
    for (const judgement of judgements.filter((each) => this.#isForCommand(each))) {
      if (this.#isStopped()) break
      if ((await this.#stillAsked([judgement])).length === 0) continue
      await this.#carryOut(judgement.use)
      await this.#post(this.#result(judgement.use))
    }
    // Last: what was answered meanwhile may have brought a rest that settles it.
    const over = await this.#replies.settle(doubts.map((use) => ({ use })))
    for (const { use } of over) this.#forget(use.id)
  }

  async #post(replies: readonly GivenReply[]): Promise<void> {
    for (const { use } of await this.#replies.post(replies)) this.#forget(use.id)
  }

  async #stillAsked(judgements: readonly Judgement[]): Promise<Judgement[]> {
    const { open, over } = await this.#replies.split(judgements)
    for (const { use } of over) this.#forget(use.id)
    return open
  }

  /** It was not replied to here. */
  #forget(id: string): void {
    this.#judgements.delete(id)
    this.#denials.forget(id)
  }

  /** The tool uses for which something is due; what cannot be answered is left open. */
  async #due(): Promise<Use[]> {
    const valid = this.#asked().filter((id) => /^[\w-]{1,128}$/.test(id))
    const uses = await this.#read(valid)
    for (const id of this.#asked().filter((each) => !uses.some((use) => use.id === each))) {
      this.#replies.leave(id)
      const why = /^[\w-]{1,128}$/.test(id) ? 'nothing is known of it' : answeredIds
      this.#session.context.note(`${id} is not answered: ${why}`)
    }
    return uses.filter(({ id }) => this.#asked().includes(id))
  }

  /** The tool uses of these ids, in that order: what a stream left out the list may show. */
  async #read(ids: readonly string[]): Promise<Use[]> {
    const { state } = this.#follower
    const find = () => ids.flatMap((id) => readUse(state.toolUse(id)) ?? [])
    for (const wait of lags) {
      const isWhole = ids.every((id) => readUse(state.toolUse(id)) !== undefined || !state.asked.includes(id))
      if (isWhole) break
      await this.#session.context.timers.wait(wait)
      await this.#replies.refresh(true)
    }
    return find()
  }

  /** By rules, and by a person if these say so and somebody is there. What nobody decides is left open. */
  async #decide(uses: readonly Use[]): Promise<Judgement[]> {
    const judged: Judgement[] = []
    for (const use of uses) judged.push(await judge(use, this.#rules))
    const isAsked = canAsk(this.#session.context)
    const questions = isAsked ? judged.filter((judgement) => isForPerson(judgement, this.#rules)) : []
    const verdicts = await this.#ask(questions)
    const judgements = judged.map((judgement): Judgement => {
      const verdict = verdicts.get(judgement.use.id)
      return verdict ? { use: judgement.use, ...verdict, by: 'person' } : judgement
    })
    const { open } = await this.#replies.split(judgements)
    for (const judgement of open) this.#take(judgement)
    return open
  }

  async #ask(questions: readonly Judgement[]): Promise<ReadonlyMap<string, Verdict>> {
    if (questions.length === 0) return new Map()
    this.#asking = questions.map(({ use }) => use)
    try {
      return await this.#rules.asker.ask(
        questions.map(({ use: { id, name, text }, why }) => ({ id, name, text, why })),
      )
    } catch (error) {
      // The person cannot be shown all of it: then it stays open.
      if (!(error instanceof CliError) || error.kind !== 'usage') throw error
      this.#session.context.note(error.message)
      return new Map()
    } finally {
      this.#asking = []
    }
  }

  /** Writes down what was decided, and tells a person. */
  #take(judgement: Judgement): void {
    const { use } = judgement
    const isLeft = this.#replyAtOnce(judgement).length === 0 && !this.#isForCommand(judgement)
    this.#replies.take(use, { event: 'decision', isLeft }, entryOf(judgement))
    this.#judgements.set(use.id, judgement)
    if (judgement.decision === 'deny') this.#denials.addDenied(judgement)
    this.#tell(judgement, isLeft)
    if (isLeft && use.isContradicted)
      this.#session.context.note(`${use.id} is not answered: the service showed it with two inputs`)
  }

  /** Without the input, which the transcript has shown. */
  #tell(judgement: Judgement, isLeft: boolean): void {
    const { use, by, decision, reason } = judgement
    const { host, style, tell, wrap } = this.#session.context
    if (!host.stderr.isTerminal) return
    const isForNobody = isLeft && decision === 'allow'
    const shown = isForNobody ? 'ask' : decision
    const why = isForNobody ? 'nothing here carries it out' : reason
    const who = by === 'person' || shown === 'ask' ? '' : style.dim(` (${deciderOf(judgement)})`)
    tell(wrap(`${describeDecision(style, use.name, { decision: shown, reason: why })}${who}`))
  }

  /** The reply to a tool use that needs nothing more than the decision. */
  #replyAtOnce({ use, decision, reason }: Judgement): GivenReply[] {
    if (decision === 'ask') return []
    if (!waitsForResult(use, this.#rules.tools))
      return [{ use, event: confirmation(use.id, decision, reason) }]
    return decision === 'deny'
      ? [{ use, event: toolResult(use, { text: reason ?? 'denied', isError: true }) }]
      : []
  }

  #isForCommand({ use, decision }: Judgement): boolean {
    const { tools } = this.#rules
    return decision === 'allow' && waitsForResult(use, tools) && tools.has(use.name)
  }

  /** The reply to a tool use that a command has carried out, here or in a run that was killed. */
  #result(use: Use): GivenReply[] {
    const reply = this.#replies.to(use.id)
    return reply.is === 'ready' ? [{ use, event: toolResult(use, reply.result) }] : []
  }

  /** Runs the command for a tool use. Throws a `CliError` if the deadline passes meanwhile. */
  async #carryOut(use: Use): Promise<void> {
    const { tools, toolTimeout } = this.#rules
    const { id, name, inputText: input } = use
    requireTime(this.#session)
    this.#replies.take(use, { event: 'start' })
    const limit = Math.min(toolTimeout, timeLeft(this.#session))
    const command = tools.get(name) ?? ''
    const session = this.#session.parts.params.session
    const result = await runTool(this.#session.context, { command, name, id, session, input, limit })
    const isLate = timeLeft(this.#session) <= 0
    // A run that was interrupted has an earlier deadline than the command was given.
    const isCut = isLate && limit < toolTimeout && result.isError
    if (!isCut) {
      const reason = result.isError ? result.text : undefined
      this.#replies.take(use, { event: 'end', result }, { result: toolResult(use, result), reason })
      this.#counts.run++
      if (result.isError) this.#tellFailed(use, result.text)
    }
    if (isLate)
      throw new CliError('stopped', `the deadline passed while the command for ${name} ran`, {
        sent: 'yes',
        deadline: true,
      })
  }

  /** The agent is told all of it. */
  #tellFailed({ id, name }: Use, text: string): void {
    this.#counts.failed++
    const [what = '', first = ''] = text.split('\n', 2)
    this.#session.context.note(`the tool use ${id} failed (${name}): ${oneLine(`${what} ${first}`, 500)}`)
  }
}

/** To allow what nobody here can carry out is not a reply, and nobody knows which of two inputs would be carried out. */
const isForPerson = ({ use, decision }: Judgement, { tools }: Rules): boolean =>
  decision === 'ask' && !use.isContradicted && (!waitsForResult(use, tools) || tools.has(use.name))
