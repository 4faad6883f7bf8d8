import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { type Money, readUsage, type SessionTokens, type SessionUsage } from '../../wire/sessions/usage.ts'
import { addTokens, type TokenCount } from '../../wire/token-count.ts'

/** What is known of what was used; what the service does not tell is absent. */
export interface Figures {
  /** Absent if nothing is known; the sum is of what is told. */
  tokens?: (SessionTokens & { totalTokens: TokenCount }) | undefined
  cost?: Money | undefined
}

/** Nothing was used before: the usage of a session that is new. */
const unused = 'unused'

/**
 * What a run and its session have used, by the session's events. The first of these that is told counts alone:
 *
 *   - the difference of two usages of the whole session, of which the first is the last one before the run. A new
 *     session had used nothing; one that had worked, and told nothing, leaves the run's unknown
 *   - the sum of the usages of the run's model requests, if each of them tells its own
 */
export class Spending {
  /** Of the whole session, as it was told last. */
  #session: SessionUsage | undefined
  #hasWorked = false
  /** It has worked since it was told last what it used. */
  #isBehind = false
  readonly #currencies = new Set<string>()
  /** The session's usage when the run began; `undefined` if that is not known. */
  #base: SessionUsage | typeof unused | undefined = unused
  /** The session has worked since the run began. */
  #hasRun = false
  #isTold = false
  /** The sum of the run's requests. */
  #requests: SessionUsage | undefined
  #lacksRequest = false
  /** The tokens of the run's requests that can be read. */
  #readTokens: number | undefined

  /** A task is about to be sent: what came before it is not of the run. */
  begin(): void {
    this.#base = this.#session ?? (this.#hasWorked ? undefined : unused)
    this.#hasRun = false
    this.#isTold = false
    this.#requests = undefined
    this.#lacksRequest = false
    this.#readTokens = undefined
  }

  /** A session is taken up as it stands: what came before is not of the run, also if it is of the same turn. */
  takeUp(): void {
    this.begin()
    if (this.#isBehind) this.#base = undefined
  }

  add(event: SessionEvent): void {
    const { type } = event
    if (/^(agent|span)\.|^session\.status_running$/.test(type)) {
      this.#hasWorked = true
      this.#hasRun = true
      this.#isBehind = true
    }
    if (type === 'session.usage') this.addSession(readUsage(event.usage))
    if (type === 'span.model_request_end') this.#addRequest(readUsage(event.model_usage))
  }

  /** A usage of the whole session that the service was asked for. One that is behind what it told since says nothing. */
  addSession(usage: SessionUsage | undefined): void {
    if (this.#addUsage(usage)) this.#isTold = true
  }

  /** The service may know what the session had used before the run, and has not told it. */
  get lacksBase(): boolean {
    return this.#base === undefined
  }

  /** The base of an older session, which the service was asked for before anything was sent. */
  addBase(usage: SessionUsage | undefined): void {
    this.#addUsage(usage)
    if (usage) this.begin()
  }

  /** The service has told a usage of the whole session since the run began. */
  get isTold(): boolean {
    return this.#isTold
  }

  /** The session has worked since the run began. */
  get hasRun(): boolean {
    return this.#hasRun
  }

  get run(): Figures {
    return this.#lacksSome ? {} : this.#told
  }

  get session(): Figures {
    return this.#inFigures(this.#session)
  }

  /** Some of what the run has used is not told, or cannot be read. */
  get isPartial(): boolean {
    return this.#lacksSome || this.#told.tokens?.totalTokens === null
  }

  /** What the run has used at least. */
  get least(): { tokens: number | undefined; cost: Money | undefined } {
    const { tokens, cost } = this.#told
    return { tokens: this.#isTold ? tokens && readable(tokens) : this.#readTokens, cost }
  }

  /** A request has not told its usage, and nothing else tells it. */
  get #lacksSome(): boolean {
    return !this.#isTold && this.#lacksRequest
  }

  /** What is told of the run. */
  get #told(): Figures {
    if (!this.#isTold) return this.#inFigures(this.#requests)
    if (!this.#session || this.#base === undefined) return {}
    return this.#inFigures(this.#base === unused ? this.#session : difference(this.#session, this.#base))
  }

  #addUsage(usage: SessionUsage | undefined): boolean {
    if (!usage || (this.#session && isBehind(usage, this.#session))) return false
    this.#note(usage)
    this.#session = usage
    this.#isBehind = false
    return true
  }

  #addRequest(usage: SessionUsage | undefined): void {
    if (!usage) {
      this.#lacksRequest = true
      return
    }
    this.#note(usage)
    this.#requests = this.#requests ? sum(this.#requests, usage) : usage
    this.#readTokens = (this.#readTokens ?? 0) + readable(usage.tokens)
  }

  #note({ cost }: SessionUsage): void {
    if (cost) this.#currencies.add(cost.currency)
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
