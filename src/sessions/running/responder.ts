import { CliError } from '../../errors.ts'
import { oneLine } from '../../io/escape.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { type Asker, canAsk, describeDecision, type Verdict } from '../confirming/asker.ts'
import { requireTime, timeLeft } from '../patience.ts'
import type { Decision } from '../policy/policy.ts'
import { confirmation, toolResult } from '../reply-events.ts'
import type { SessionState } from '../session-state.ts'
import {
  deciderOf,
  describeJudgement,
  describeUse,
  type Judgement,
  judge,
  type Rules,
  readUse,
  type Use,
  waitsForResult,
} from './judgement.ts'
import { type GivenReply, Replies, type RunningSession } from './replies.ts'
import { dutyOf } from './replying.ts'
import { runTool } from './tools.ts'
import { type Denied, findUnasked, type Sighting } from './unasked.ts'

interface Responding extends RunningSession {
  asker: Asker
  rules: Rules
  /** The ids of the tool uses that wait. */
  waiting(): string[]
  /** How long a command may take. Milliseconds. */
  toolTimeout: number
}

/** Why an id that a person may answer is left to one. */
const answeredIds = 'rules answer only ids of 1 to 128 letters, digits, _ and -'

/** The waits before each look at a list that may lag. Milliseconds. */
const lags = [0, 250, 500, 1_000, 2_000]

/** Replies to what a session waits for, by rules, by commands and by a person, and counts what was done. */
export class Responder {
  readonly #with: Responding
  readonly #replies: Replies
  /** Tool uses that the policy denies, and that have not been seen to run. */
  readonly #notRun: Denied = { allowed: new Map(), others: new Map() }
  /** By id: one that the session asks for anew is decided again. */
  readonly #decided = new Map<string, Judgement>()
  readonly #unasked: Judgement[] = []
  /** What the list said when it was last looked at for a reply that no stream has shown. */
  #listed: SessionState | undefined
  readonly #counts = { turns: 0, run: 0, failed: 0 }

  constructor(responding: Responding) {
    this.#with = responding
    this.#replies = new Replies(responding)
  }

  /** Looks at news, then replies to what waits. Throws as `reply` does. */
  async react(items: readonly EventItem[]): Promise<void> {
    for (const item of items) {
      if (item.event.type === 'session.status_idle') this.#counts.turns++
      for (const sighting of findUnasked(this.#notRun, item, this.#with.rules))
        if (await this.#isUnasked(sighting)) this.#tellUnasked(sighting.judgement)
    }
    await this.reply()
  }

  /** Replies to what waits until nothing is due; returns what the service named as accepted. Throws a `CliError`. */
  async reply(): Promise<SessionEvent[]> {
    const named: SessionEvent[] = []
    for (;;) {
      const uses = await this.#waiting()
      if (uses.length === 0 || this.#with.isStopped()) return named
      const due = (duty: ReturnType<typeof dutyOf>) =>
        uses.filter(({ id }) => dutyOf(this.#replies.to(id)) === duty)
      const [results, doubts] = [due('post').flatMap((use) => this.#result(use)), due('look')]
      const judgements = await this.#decide(due('decide'))
      const atOnce = judgements.flatMap((judgement) => this.#replyAtOnce(judgement))
      named.push(...(await this.#replies.post([...results, ...atOnce])))
      for (const { use } of judgements.filter((judgement) => this.#isForCommand(judgement))) {
        if (this.#with.isStopped()) break
        await this.#carryOut(use)
        named.push(...(await this.#replies.post(this.#result(use))))
      }
      // Last: what was answered meanwhile may have brought a rest that settles it.
      await this.#replies.settle(doubts)
    }
  }

  /** What was done in this run, in one line. */
  describe(): string {
    const { turns, run, failed } = this.#counts
    const [allowed, denied] = [this.#thatWere('allow').length, this.#thatWere('deny').length]
    const tools = `tools: ${allowed} allowed, ${denied} denied, ${run} run here`
    const failures = failed > 0 ? `, ${failed} failed` : ''
    return `${turns} ${turns === 1 ? 'turn' : 'turns'}; ${tools}${failures}`
  }

  /** Why a run that went well is not a success. */
  failure(): CliError | undefined {
    const [denied, unasked] = [this.#thatWere('deny'), this.#unasked]
    if (denied.length + unasked.length === 0) return undefined
    const count = ({ length }: Judgement[]) => `${length} tool ${length === 1 ? 'use' : 'uses'}`
    const what = [
      ...(denied.length > 0 ? [`${count(denied)} denied`] : []),
      ...(unasked.length > 0 ? [`${count(unasked)} that ran unasked although denied`] : []),
    ]
    const session = this.#with.parts.params.session
    return new CliError('denied', `${session} ended its turn with ${what.join(', and with ')}`, {
      sent: 'yes',
      problems: [...denied, ...unasked].map(describeJudgement),
    })
  }

  #thatWere(decision: Decision): Judgement[] {
    return [...this.#decided.values()].filter((judgement) => judgement.decision === decision)
  }

  /** The tool uses that wait and for which something is due; what cannot be answered is left open. */
  async #waiting(): Promise<Use[]> {
    const { waiting, isStopped, context } = this.#with
    if (isStopped()) return []
    const ids = waiting().filter((id) => dutyOf(this.#replies.to(id)) !== undefined)
    const valid = ids.filter((id) => /^[\w-]{1,128}$/.test(id))
    const uses = await this.#read(valid)
    for (const id of ids.filter((each) => !uses.some((use) => use.id === each))) {
      this.#replies.leave(id)
      const why = valid.includes(id) ? 'nothing is known of it' : answeredIds
      context.note(`${id} is not answered: ${why}`)
    }
    return uses
  }

  /** The tool uses of these ids, in that order: what a stream left out the list may show. */
  async #read(ids: readonly string[]): Promise<Use[]> {
    const uses = new Map<string, Use>()
    const add = (seen: SessionState) => {
      for (const id of ids) {
        const found = uses.has(id) ? undefined : seen.toolUse(id)
        const use = found && readUse(found)
        if (use) uses.set(id, use)
      }
    }
    add(this.#with.state)
    for (const wait of lags) {
      if (ids.every((id) => uses.has(id))) break
      await this.#with.context.timers.wait(wait)
      const seen = await this.#replies.list()
      if (seen) add(seen)
    }
    return ids.flatMap((id) => uses.get(id) ?? [])
  }

  /** By rules, and by a person if these say so and somebody is there. What nobody decides is left open. */
  async #decide(uses: readonly Use[]): Promise<Judgement[]> {
    const { context, rules } = this.#with
    const judged = uses.map((use) => judge(use, rules))
    const questions = canAsk(context) ? judged.filter((judgement) => isForPerson(judgement, rules)) : []
    const verdicts = await this.#ask(questions.map(({ use }) => use))
    const judgements = judged.map((judgement): Judgement => {
      const verdict = verdicts.get(judgement.use.id)
      return verdict ? { use: judgement.use, ...verdict, by: 'person' } : judgement
    })
    for (const judgement of judgements) this.#take(judgement)
    return judgements
  }

  async #ask(uses: readonly Use[]): Promise<ReadonlyMap<string, Verdict>> {
    if (uses.length === 0) return new Map()
    try {
      return await this.#with.asker.ask(uses.map(({ id, name, text }) => ({ id, name, text })))
    } catch (error) {
      // The person cannot be shown all of it: then it stays open.
      if (!(error instanceof CliError) || error.kind !== 'usage') throw error
      this.#with.context.note(error.message)
      return new Map()
    }
  }

  /** Writes down what was decided, and tells a person. */
  #take(judgement: Judgement): void {
    const { context } = this.#with
    const { use } = judgement
    const isLeft = this.#replyAtOnce(judgement).length === 0 && !this.#isForCommand(judgement)
    this.#replies.take(use, { event: 'decision', isLeft }, entryOf(judgement))
    this.#decided.set(use.id, judgement)
    this.#tell(judgement, isLeft)
    if (isLeft && use.isContradicted)
      context.note(`${use.id} is not answered: the service showed it with two inputs`)
  }

  /** Without the input, which the transcript has shown. */
  #tell(judgement: Judgement, isLeft: boolean): void {
    const { use, by, decision, reason } = judgement
    const { host, style, tell, wrap } = this.#with.context
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
    if (!waitsForResult(use, this.#with.rules.tools))
      return [{ use, event: confirmation(use.id, decision, reason) }]
    return decision === 'deny'
      ? [{ use, event: toolResult(use, { text: reason ?? 'denied', isError: true }) }]
      : []
  }

  #isForCommand({ use, decision }: Judgement): boolean {
    const { tools } = this.#with.rules
    return decision === 'allow' && waitsForResult(use, tools) && tools.has(use.name)
  }

  /** The reply to a tool use that a command has carried out, here or in a run that was killed. */
  #result(use: Use): GivenReply[] {
    const reply = this.#replies.to(use.id)
    return reply.is === 'ready' ? [{ use, event: toolResult(use, reply.result) }] : []
  }

  /** Runs the command for a tool use. Throws a `CliError` if the deadline passes meanwhile. */
  async #carryOut(use: Use): Promise<void> {
    const { context, caller, rules, parts, toolTimeout } = this.#with
    const { id, name, inputText: input } = use
    requireTime({ context, caller })
    this.#replies.take(use, { event: 'start' })
    const limit = Math.min(toolTimeout, timeLeft({ context, caller }))
    const command = rules.tools.get(name) ?? ''
    const session = parts.params.session
    const result = await runTool(context, { command, name, id, session, input, limit })
    const isLate = timeLeft({ context, caller }) <= 0
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
    this.#with.context.note(`the tool use ${id} failed (${name}): ${oneLine(`${what} ${first}`, 500)}`)
  }

  /** Whether it ran without a reply, also of another client, which only the list may show. */
  async #isUnasked({ judgement: { use }, isCertain }: Sighting): Promise<boolean> {
    const { context, state } = this.#with
    if (state.hasReply(use.id)) return false
    if (isCertain) return true
    for (const wait of lags) {
      // A list that has got as far as the result of one use may have got as far as those of others.
      if (this.#listed?.hasReply(use.id) || state.hasReply(use.id)) return false
      if (this.#listed?.isAnswered(use.id)) return true
      await context.timers.wait(wait)
      this.#listed = await this.#replies.list()
    }
    return !this.#listed?.hasReply(use.id) && !state.hasReply(use.id)
  }

  #tellUnasked(judgement: Judgement): void {
    const { audit, context } = this.#with
    audit.add({ ...entryOf(judgement), event: 'not-asked' })
    this.#unasked.push(judgement)
    context.warn(
      `the policy denies a tool use that the service ran without asking: ${describeUse(judgement.use)}`,
    )
  }
}

/** What the audit has of a decision. */
const entryOf = ({ use, decision, by, rule, reason }: Judgement) => ({
  toolUse: use.id,
  type: use.type,
  server: use.server,
  name: use.name,
  input: use.inputText,
  decision,
  by,
  rule,
  reason,
})

/** To allow what nobody here can carry out is not a reply, and nobody knows which of two inputs would be carried out. */
const isForPerson = ({ use, decision }: Judgement, { tools }: Rules): boolean =>
  decision === 'ask' && !use.isContradicted && (!waitsForResult(use, tools) || tools.has(use.name))
