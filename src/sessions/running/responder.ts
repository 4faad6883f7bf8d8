import type { EventItem } from '../../wire/sessions/events-page.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Asker } from '../confirming/verdicts.ts'
import { type Answer, confirmation, result } from './answer-events.ts'
import { Answers } from './answers.ts'
import type { Call } from './call.ts'
import { decideAll } from './deciding.ts'
import { type JobOptions, Jobs } from './jobs.ts'
import { Record } from './record.ts'
import type { RunningSession } from './running-session.ts'
import { Unasked } from './unasked.ts'
import { Uses } from './uses.ts'
import { type Rules, type Verdict, waitsForResult } from './verdict.ts'

interface Responding extends RunningSession {
  asker: Asker
  rules: Rules
  /** The ids of the tool uses that wait. */
  waiting(): string[]
  /** Of commands. */
  jobs: Omit<JobOptions, 'tools'>
}

/** Answers what a session waits for, by rules, by commands and by a person. */
export class Responder {
  readonly #with: Responding
  readonly #answers: Answers
  readonly #uses: Uses
  readonly #jobs: Jobs
  readonly #unasked: Unasked
  readonly #record: Record
  /** Those that are looked at no more: they stay open. */
  readonly #open = new Set<string>()

  constructor(responding: Responding) {
    const { context, audit, rules, jobs } = responding
    this.#with = responding
    this.#answers = new Answers(responding)
    this.#uses = new Uses(responding, this.#answers.look)
    this.#jobs = new Jobs(responding, { ...jobs, tools: rules.tools })
    this.#unasked = new Unasked(rules)
    this.#record = new Record(context, audit)
  }

  get record(): Pick<Record, 'failure' | 'showSum'> {
    return this.#record
  }

  /** Looks at news, then answers what waits. Throws as `answer` does. */
  async react(items: readonly EventItem[]): Promise<void> {
    this.#record.addTurns(items)
    for (const sighting of this.#unasked.add(items, this.#with.state))
      if (await this.#uses.isUnasked(sighting)) this.#record.addUnasked(sighting.verdict)
    await this.answer()
  }

  /** Answers what waits; returns what the service named as accepted. Throws a `CliError`. */
  async answer(): Promise<SessionEvent[]> {
    const named: SessionEvent[] = []
    for (let isMore = true; isMore; ) {
      const calls = await this.#next()
      const jobs: Call[] = []
      const found = calls.map((call) => this.#jobs.find(call))
      const fresh = calls.filter((_, index) => !found[index])
      const verdicts = await decideAll(this.#with, this.#with.rules, fresh)
      for (const verdict of verdicts) this.#record.addVerdict(verdict)
      const answers = verdicts.flatMap((verdict) => this.#answerNow(verdict, jobs))
      named.push(
        ...(await this.#answers.post([...found.filter((answer) => answer !== undefined), ...answers])),
      )
      for (const call of jobs) named.push(...(await this.#answers.post([await this.#carryOut(call)])))
      isMore = (await this.#answers.settleDoubtful()) || calls.length > 0
    }
    return named
  }

  /** The tool uses that wait and may be answered now; what cannot be is left open. */
  async #next(): Promise<Call[]> {
    const { waiting, context } = this.#with
    const ids = waiting().filter((id) => !this.#open.has(id))
    const valid = ids.filter((id) => /^[\w-]{1,128}$/.test(id))
    const calls = await this.#uses.read(valid)
    for (const id of ids.filter((each) => !calls.some((call) => call.id === each))) {
      this.#open.add(id)
      const why = valid.includes(id) ? 'nothing is known of it' : 'its id is not valid'
      context.note(`${id} is not answered: ${why}`)
    }
    return calls.filter((call) => this.#answers.mayPost(call))
  }

  /** The answer to what needs nothing more; what a command has to carry out is added to `jobs`. */
  #answerNow({ call, decision, reason }: Verdict, jobs: Call[]): Answer[] {
    const { tools } = this.#with.rules
    if (!waitsForResult(call, tools)) {
      if (decision !== 'ask') return [confirmation(call, decision === 'allow', reason)]
    } else if (decision === 'deny') {
      return [result(call, { text: reason ?? 'denied', isError: true })]
    } else if (decision === 'allow' && tools.has(call.name)) {
      jobs.push(call)
      return []
    }
    this.#open.add(call.id)
    if (call.isContradicted)
      this.#with.context.note(`${call.id} is not answered: the service showed it with two inputs`)
    return []
  }

  async #carryOut(call: Call): Promise<Answer> {
    const answer = await this.#jobs.carryOut(call)
    this.#record.addRun()
    return answer
  }
}
