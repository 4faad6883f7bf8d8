import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { type Money, readUsage, type SessionTokens, type SessionUsage } from '../../wire/sessions/usage.ts'
import { addTokens, type TokenCount } from '../../wire/token-count.ts'
import { isTask } from '../following/followed-turn.ts'

/** What is known of what was used; what the service does not tell is absent. */
export interface Figures {
  /** Absent if nothing is known; the sum is of what is told. */
  tokens?: (SessionTokens & { totalTokens: TokenCount }) | undefined
  cost?: Money | undefined
}

/** Nothing was used before: the usage of a session that is new. */
const unused = 'unused'

/** What was used since a task, or since the session was taken up. */
class Span {
  /** The session's usage at its beginning; `undefined` if that is not known. */
  base: SessionUsage | typeof unused | undefined = unused
  /** A usage of the whole session came since. */
  isTold = false
  #requests: SessionUsage | undefined
  #lacksRequest = false
  /** The tokens of the requests that can be read. */
  least: number | undefined

  begin(base: Span['base']): void {
    this.base = base
    this.isTold = false
    this.#requests = undefined
    this.#lacksRequest = false
    this.least = undefined
  }

  addRequest(usage: SessionUsage | undefined): void {
    if (!usage) {
      this.#lacksRequest = true
      return
    }
    this.#requests = this.#requests ? sum(this.#requests, usage) : usage
    this.least = (this.least ?? 0) + readable(usage.tokens)
  }

  /** A request has not told its usage, and nothing else tells it. */
  get lacksSome(): boolean {
    return !this.isTold && this.#lacksRequest
  }

  /** What is told of it, by what the session has used now. */
  told(now: SessionUsage | undefined): SessionUsage | undefined {
    if (!this.isTold) return this.#requests
    if (!now || this.base === undefined) return undefined
    return this.base === unused ? now : difference(now, this.base)
  }
}

/**
 * What a run, all of its turn, and its session have used, by the session's events. The first of these that is told counts alone:
 *
 *   - the difference of two usages of the whole session, of which the first is the last one before the task. A new
 *     session had used nothing; one that had worked, and told nothing, leaves the turn's unknown
 *   - the sum of the usages of the turn's model requests, if each of them tells its own
 */
export class Spending {
  /** Of the whole session, as it was told last. */
  #session: SessionUsage | undefined
  #hasWorked = false
  /** It has worked since it was told last what it used. */
  #isBehind = false
  /** Of this run alone. */
  readonly #run = new Span()
  /** Of the turn, also if an earlier run began it. */
  readonly #turn = new Span()
  /** Those that begin with this run. */
  #begun: readonly Span[] = [this.#run, this.#turn]
  readonly #currencies = new Set<string>()

  /** An event from before this run sent anything. The last task of the session begins the turn, unless one is sent. */
  addPast(event: SessionEvent): void {
    if (isTask(event)) this.#turn.begin(this.#now)
    this.add(event)
  }

  /** A session is taken up as it stands: what came before is not of this run, also if it is of the same turn. */
  takeUp(): void {
    this.#begun = [this.#run]
    this.#run.begin(this.#isBehind ? undefined : this.#now)
  }

  /** A task is about to be sent: what came before it is not of its turn. */
  begin(): void {
    for (const span of this.#begun) span.begin(this.#now)
  }

  add(event: SessionEvent): void {
    const { type } = event
    if (/^(agent|span)\.|^session\.status_running$/.test(type)) {
      this.#hasWorked = true
      this.#isBehind = true
    }
    if (type === 'session.usage') this.addSession(readUsage(event.usage))
    if (type === 'span.model_request_end') this.#addRequest(readUsage(event.model_usage))
  }

  /** A usage of the whole session that the service was asked for. One that is behind what it told since says nothing. */
  addSession(usage: SessionUsage | undefined): void {
    if (!this.#addUsage(usage)) return
    this.#run.isTold = true
    this.#turn.isTold = true
  }

  /** The service may know what the session had used before the run, and has not told it. */
  get lacksBase(): boolean {
    return this.#run.base === undefined
  }

  /** The base of an older session, which the service was asked for before anything was sent. */
  addBase(usage: SessionUsage | undefined): void {
    this.#addUsage(usage)
    if (usage) this.begin()
  }

  /** The service has told a usage of the whole session since the run began. */
  get isTold(): boolean {
    return this.#run.isTold
  }

  get run(): Figures {
    return this.#figuresOf(this.#run)
  }

  get turn(): Figures {
    return this.#figuresOf(this.#turn)
  }

  get session(): Figures {
    return this.#inFigures(this.#session)
  }

  /** Some of what the turn has used is not told, or cannot be read. */
  get isPartial(): boolean {
    return this.#turn.lacksSome || this.#toldOfTurn.tokens?.totalTokens === null
  }

  /** What the turn has used at least. */
  get least(): { tokens: number | undefined; cost: Money | undefined } {
    const { tokens, cost } = this.#toldOfTurn
    return { tokens: this.#turn.isTold ? tokens && readable(tokens) : this.#turn.least, cost }
  }

  get #toldOfTurn(): Figures {
    return this.#inFigures(this.#turn.told(this.#session))
  }

  /** What the session has used by now, as far as that is known. */
  get #now(): Span['base'] {
    return this.#session ?? (this.#hasWorked ? undefined : unused)
  }

  #addUsage(usage: SessionUsage | undefined): boolean {
    if (!usage || (this.#session && isBehind(usage, this.#session))) return false
    this.#note(usage)
    this.#session = usage
    this.#isBehind = false
    return true
  }

  #addRequest(usage: SessionUsage | undefined): void {
    if (usage) this.#note(usage)
    this.#run.addRequest(usage)
    this.#turn.addRequest(usage)
  }

  #note({ cost }: SessionUsage): void {
    if (cost) this.#currencies.add(cost.currency)
  }

  #figuresOf(span: Span): Figures {
    return span.lacksSome ? {} : this.#inFigures(span.told(this.#session))
  }

  /** Of two currencies there is no sum. */
  #inFigures(usage: SessionUsage | undefined): Figures {
    if (!usage) return {}
    const { tokens, cost } = usage
    const counts = Object.values(tokens) as TokenCount[]
    const totalTokens = counts.reduce(addTokens, 0)
    return {
      tokens: counts.length > 0 ? { ...tokens, totalTokens } : undefined,
      cost: this.#currencies.size > 1 ? undefined : cost,
    }
  }
}

const names = [
  'inputTokens',
  'outputTokens',
  'cacheReadInputTokens',
  'cacheCreationInputTokens',
] as const satisfies (keyof SessionTokens)[]

const readable = (tokens: SessionTokens): number =>
  names.reduce((total, name) => total + (tokens[name] ?? 0), 0)

/** Of each name that both tell; unknown if one of them cannot be read. `combineCounts` may have nothing to say. */
function combine(
  one: SessionTokens,
  other: SessionTokens,
  combineCounts: (one: number, other: number) => number | undefined,
): SessionTokens {
  const tokens: SessionTokens = {}
  for (const name of names) {
    const [count, otherCount] = [one[name], other[name]]
    if (count === null || otherCount === null) tokens[name] = null
    if (typeof count !== 'number' || typeof otherCount !== 'number') continue
    const combined = combineCounts(count, otherCount)
    if (combined !== undefined) tokens[name] = combined
  }
  return tokens
}

/** What was told once and not again is not known. */
const sum = (one: SessionUsage, other: SessionUsage): SessionUsage => ({
  tokens: combine(one.tokens, other.tokens, (count, more) => count + more),
  cost: one.cost && other.cost ? { ...one.cost, amount: one.cost.amount + other.cost.amount } : undefined,
})

/** A usage that is less than before cannot be of the same session's whole. */
const difference = (now: SessionUsage, base: SessionUsage): SessionUsage => ({
  tokens: combine(now.tokens, base.tokens, (count, before) => (count < before ? undefined : count - before)),
  cost:
    now.cost && base.cost && now.cost.amount >= base.cost.amount
      ? { ...now.cost, amount: now.cost.amount - base.cost.amount }
      : undefined,
})

function isBehind(usage: SessionUsage, last: SessionUsage): boolean {
  const isLess = names.some((name) => (usage.tokens[name] ?? Infinity) < (last.tokens[name] ?? 0))
  const isMore = names.some((name) => (usage.tokens[name] ?? 0) > (last.tokens[name] ?? Infinity))
  return isLess && !isMore
}
