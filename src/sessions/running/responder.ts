import { CliError } from '../../errors.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { type Asker, canAsk } from '../confirming/verdicts.ts'
import { Endurance } from '../following/endurance.ts'
import { confirmation, toolResult } from '../reply-events.ts'
import type { SessionState } from '../session-state.ts'
import { type Call, readCall } from './call.ts'
import { entryOf, Record } from './record.ts'
import { type Answered, Replies, type RunningSession } from './replies.ts'
import { dutyOf } from './replying.ts'
import { runTool } from './tools.ts'
import { type Sighting, Unasked } from './unasked.ts'
import { judge, type Rules, type Verdict, waitsForResult } from './verdict.ts'

interface Responding extends RunningSession {
  asker: Asker
  rules: Rules
  /** The ids of the tool uses that wait. */
  waiting(): string[]
  /** How long a command may take. Milliseconds. */
  toolTimeout: number
}

/** The waits before each look at a list that may lag. Milliseconds. */
const lags = [0, 250, 500, 1_000, 2_000]

/** Answers what a session waits for, by rules, by commands and by a person. */
export class Responder {
  readonly #with: Responding
  readonly #replies: Replies
  readonly #unasked: Unasked
  readonly #record: Record

  constructor(responding: Responding) {
    this.#with = responding
    this.#replies = new Replies(responding)
    this.#unasked = new Unasked(responding.rules)
    this.#record = new Record(responding.context, responding.audit)
  }

  get record(): Pick<Record, 'failure' | 'showSum'> {
    return this.#record
  }

  /** Looks at news, then answers what waits. Throws as `answer` does. */
  async react(items: readonly EventItem[]): Promise<void> {
    this.#record.addTurns(items)
    for (const sighting of this.#unasked.add(items, this.#with.state))
      if (await this.#isUnasked(sighting)) this.#record.addUnasked(sighting.verdict)
    await this.answer()
  }

  /** Answers what waits until nothing is due; returns what the service named as accepted. Throws a `CliError`. */
  async answer(): Promise<SessionEvent[]> {
    const named: SessionEvent[] = []
    for (;;) {
      const calls = await this.#waiting()
      if (calls.length === 0) return named
      const due = (duty: ReturnType<typeof dutyOf>) =>
        calls.filter(({ id }) => dutyOf(this.#replies.to(id)) === duty)
      const [results, doubts] = [due('post').flatMap((call) => this.#result(call)), due('look')]
      const verdicts = await this.#decide(due('decide'))
      named.push(...(await this.#replies.post([...results, ...verdicts.flatMap(this.#replyAtOnce)])))
      for (const { call } of verdicts.filter(this.#isForCommand)) {
        await this.#carryOut(call)
        named.push(...(await this.#replies.post(this.#result(call))))
      }
      // Last: what was answered meanwhile may have brought a rest that settles it.
      await this.#replies.settle(doubts)
    }
  }

  /** The tool uses that wait and for which something is due; what cannot be answered is left open. */
  async #waiting(): Promise<Call[]> {
    const { waiting, context } = this.#with
    const ids = waiting().filter((id) => dutyOf(this.#replies.to(id)) !== undefined)
    const valid = ids.filter((id) => /^[\w-]{1,128}$/.test(id))
    const calls = await this.#read(valid)
    for (const id of ids.filter((each) => !calls.some((call) => call.id === each))) {
      this.#replies.leave(id)
      const why = valid.includes(id) ? 'nothing is known of it' : 'its id is not valid'
      context.note(`${id} is not answered: ${why}`)
    }
    return calls
  }

  /** The tool uses of these ids, in that order: what a stream left out the list may show. */
  async #read(ids: readonly string[]): Promise<Call[]> {
    const calls = new Map<string, Call>()
    const add = (seen: SessionState) => {
      for (const id of ids) {
        const use = calls.has(id) ? undefined : seen.toolUse(id)
        const call = use && readCall(use)
        if (call) calls.set(id, call)
      }
    }
    add(this.#with.state)
    for (const wait of lags) {
      if (ids.every((id) => calls.has(id))) break
      await this.#with.context.timers.wait(wait)
      const seen = await this.#replies.list()
      if (seen) add(seen)
    }
    return ids.flatMap((id) => calls.get(id) ?? [])
  }

  /** By rules, and by a person if these say so and somebody is there. What nobody decides is left open. */
  async #decide(calls: readonly Call[]): Promise<Verdict[]> {
    const { context, rules } = this.#with
    const judged = calls.map((call) => judge(call, rules))
    const questions = canAsk(context) ? judged.filter((verdict) => isForPerson(verdict, rules)) : []
    const said = await this.#ask(questions.map(({ call }) => call))
    const verdicts = judged.map((verdict): Verdict => {
      const isAllowed = said.get(verdict.call.id)
      if (isAllowed === undefined) return verdict
      return { call: verdict.call, decision: isAllowed ? 'allow' : 'deny', by: 'person' }
    })
    for (const verdict of verdicts) {
      const { call } = verdict
      const isLeft = this.#replyAtOnce(verdict).length === 0 && !this.#isForCommand(verdict)
      this.#replies.take(call, { event: 'decision', isLeft }, entryOf(verdict))
      this.#record.addVerdict(verdict)
      if (isLeft && call.isContradicted)
        context.note(`${call.id} is not answered: the service showed it with two inputs`)
    }
    return verdicts
  }

  async #ask(calls: readonly Call[]): Promise<Map<string, boolean>> {
    if (calls.length === 0) return new Map()
    try {
      const verdicts = await this.#with.asker.ask(calls.map(({ id, name, text }) => ({ id, name, text })))
      return new Map(verdicts.map(({ id, isAllowed }) => [id, isAllowed]))
    } catch (error) {
      // The person left, or cannot be shown all of it: then it stays open.
      if (!(error instanceof CliError) || error.kind !== 'usage') throw error
      this.#with.context.note(error.message)
      return new Map()
    }
  }

  /** The reply to what needs nothing more than the decision. */
  readonly #replyAtOnce = ({ call, decision, reason }: Verdict): Answered[] => {
    if (decision === 'ask') return []
    if (!waitsForResult(call, this.#with.rules.tools))
      return [{ use: call, event: confirmation(call.id, decision === 'allow', reason) }]
    return decision === 'deny'
      ? [{ use: call, event: toolResult(call, { text: reason ?? 'denied', isError: true }) }]
      : []
  }

  readonly #isForCommand = ({ call, decision }: Verdict): boolean => {
    const { tools } = this.#with.rules
    return decision === 'allow' && waitsForResult(call, tools) && tools.has(call.name)
  }

  /** The reply to what a command has carried out, here or in a run that was killed. */
  #result(call: Call): Answered[] {
    const reply = this.#replies.to(call.id)
    return reply.is === 'ready' ? [{ use: call, event: toolResult(call, reply.result) }] : []
  }

  /** Runs the command for a tool use. Throws a `CliError` if the deadline passes meanwhile. */
  async #carryOut(call: Call): Promise<void> {
    const { context, caller, rules, parts, toolTimeout } = this.#with
    const { id, name, inputText: input } = call
    const endurance = new Endurance(context, caller)
    endurance.checkDeadline()
    this.#replies.take(call, { event: 'start' })
    const limit = Math.min(toolTimeout, endurance.left)
    const command = rules.tools.get(name) ?? ''
    const session = parts.params.session ?? ''
    const result = await runTool(context, { command, name, id, session, input, limit })
    if (endurance.left <= 0)
      throw new CliError('stopped', `the deadline passed while the command for ${name} ran`, { sent: 'yes' })
    const reason = result.isError ? result.text : undefined
    this.#replies.take(call, { event: 'end', result }, { result: toolResult(call, result), reason })
    this.#record.addRun()
  }

  /** Whether it ran without a reply, also of another client, which only the list may show. */
  async #isUnasked({ verdict: { call }, isCertain }: Sighting): Promise<boolean> {
    const { context, state } = this.#with
    if (isCertain) return true
    for (const wait of lags) {
      await context.timers.wait(wait)
      const seen = await this.#replies.list()
      if (seen?.hasReply(call.id) || state.hasReply(call.id)) return false
      // The list has got as far as the result.
      if (seen?.isAnswered(call.id)) return true
    }
    return true
  }
}

/** Whoever allows what nobody here can carry out has answered nothing, and nobody knows what a second input would do. */
const isForPerson = ({ call, decision }: Verdict, { tools }: Rules): boolean =>
  decision === 'ask' && !call.isContradicted && (!waitsForResult(call, tools) || tools.has(call.name))
