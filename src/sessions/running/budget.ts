import { formatTokenCount } from '../../content/tokens.ts'
import { formatMoney, toMinorUnits } from '../../io/money.ts'
import type { UsageFigures } from '../../summary.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import { addTokens, type TokenCount, type TokenCounts } from '../../wire/token-count.ts'

/** Limits of a run. */
export interface LimitFlags {
  maxTotalTokens?: number
  /** The user's amount, in major currency units. */
  maxCost?: string
}

/** Marks a session without earlier usage. */
const unused = 'unused'

/**
 * Computes the usage of a run and its session from events, and whether the run is over its limits. The usage
 * of the run is the first of these two that the service reports:
 *
 * - the difference between the session's newest usage and its last usage before the run. A new session starts
 *   with no usage. If an older session reported no usage before the run, the usage of the run is unknown
 * - the sum of the usages of the run's model requests
 */
export class Budget {
  readonly #flags: LimitFlags
  /** Newest usage of the whole session. */
  #session: SessionUsage | undefined
  /** The agent has worked since the run began or, before the run, at any time. */
  #hasWorked = false
  /** The agent has worked since the newest usage was reported. */
  #isBehind = false
  readonly #currencies = new Set<string>()
  /** Usage of the session at the start of the run; `undefined` if unknown. */
  #base: SessionUsage | typeof unused | undefined = unused
  /** The service has reported a total usage since the run began. */
  hasSessionUsage = false
  /** Sum of the usages of the run's requests. */
  #requests: SessionUsage | undefined
  #lacksRequest = false
  /** Sum of the tokens of the run's requests, without counts that cannot be read. */
  #readTokens: number | undefined

  constructor(flags: LimitFlags = {}) {
    this.#flags = flags
  }

  get hasLimits(): boolean {
    return this.#flags.maxTotalTokens !== undefined || this.#flags.maxCost !== undefined
  }

  /** Starts to count for the run. Earlier usage does not count. */
  begin(hasTask: boolean): void {
    const isKnown = hasTask || !this.#isBehind
    this.#base = isKnown ? (this.#session ?? (this.#hasWorked ? undefined : unused)) : undefined
    this.#hasWorked = false
    this.hasSessionUsage = false
    this.#requests = undefined
    this.#lacksRequest = false
    this.#readTokens = undefined
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

  /** Adds the total usage of the session. Ignores a total that is lower than the newest one. */
  addSession(usage: SessionUsage | undefined): void {
    if (!usage || (this.#session && isOlder(usage, this.#session))) return
    this.#addCurrency(usage)
    this.#session = usage
    this.#isBehind = false
    this.hasSessionUsage = true
  }

  /** Adds the total usage of the session at the start of the run. */
  addBase(usage: SessionUsage | undefined): void {
    this.addSession(usage)
    if (usage) this.begin(false)
  }

  /** The usage at the start of the run is unknown. */
  get lacksBase(): boolean {
    return this.#base === undefined
  }

  get run(): UsageFigures {
    return this.#lacksUsage ? {} : this.#reported
  }

  get session(): UsageFigures {
    return this.#toFigures(this.#session)
  }

  /** Describes the limit that the run has exceeded. Returns `undefined` if it is within its limits. */
  findExceededLimit(): string | undefined {
    const { maxTotalTokens = Infinity, maxCost } = this.#flags
    const tokens = this.#minTokens ?? -1
    const { cost } = this.#reported
    const atLeast = this.#lacksUsage || this.#reported.tokens?.totalTokens === null ? 'at least ' : ''
    if (tokens >= maxTotalTokens)
      return `the run took ${atLeast}${formatTokenCount(tokens)}, and --max-total-tokens is ${maxTotalTokens}`
    if (maxCost === undefined || !cost || cost.amount < toMinorUnits(maxCost, cost.currency)) return undefined
    return `the run cost ${atLeast}${formatMoney(cost)}, and --max-cost is ${maxCost}`
  }

  /**
   * Returns a warning that names the limits that cannot be enforced, because the service reports no usage.
   */
  get unenforceable(): string | undefined {
    if (!this.#hasWorked) return undefined
    const { tokens, cost } = this.run
    const lacksTokens = this.#flags.maxTotalTokens !== undefined && typeof tokens?.totalTokens !== 'number'
    const lacksCost = this.#flags.maxCost !== undefined && !cost
    const flags = [...(lacksTokens ? ['--max-total-tokens'] : []), ...(lacksCost ? ['--max-cost'] : [])]
    if (flags.length === 0) return undefined
    return `${flags.join(' and ')} cannot be enforced: the service does not report the usage of the run`
  }

  /** Minimum number of tokens that the run has used. */
  get #minTokens(): number | undefined {
    const { tokens } = this.#reported
    return this.hasSessionUsage ? tokens && sumReadable(tokens) : this.#readTokens
  }

  /** A model request reported no usage, and the session reported no total. */
  get #lacksUsage(): boolean {
    return !this.hasSessionUsage && this.#lacksRequest
  }

  get #reported(): UsageFigures {
    if (!this.hasSessionUsage) return this.#toFigures(this.#requests)
    if (!this.#session || this.#base === undefined) return {}
    return this.#toFigures(this.#base === unused ? this.#session : combine(this.#session, this.#base, -1))
  }

  #addRequest(usage: SessionUsage | undefined): void {
    if (!usage) {
      this.#lacksRequest = true
      return
    }
    this.#addCurrency(usage)
    this.#requests = this.#requests ? combine(this.#requests, usage, 1) : usage
    this.#readTokens = (this.#readTokens ?? 0) + sumReadable(usage.tokens)
  }

  #addCurrency({ cost }: SessionUsage): void {
    if (cost) this.#currencies.add(cost.currency)
  }

  /**
   * Converts a usage for the report, with the sum of its token counts. Costs in two currencies have no sum,
   * so they are left out.
   */
  #toFigures(usage: SessionUsage | undefined): UsageFigures {
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

const tokenNames = [
  'inputTokens',
  'outputTokens',
  'cacheReadInputTokens',
  'cacheCreationInputTokens',
] as const satisfies (keyof TokenCounts)[]

const sumReadable = (tokens: TokenCounts): number =>
  tokenNames.reduce((total, name) => total + (tokens[name] ?? 0), 0)

/**
 * Returns the sum or difference of two usages. A count that cannot be read in one usage is null in the
 * result. A negative difference is left out: the usages belong to different sessions.
 */
function combine(one: SessionUsage, other: SessionUsage, sign: 1 | -1): SessionUsage {
  const tokens: TokenCounts = {}
  for (const name of tokenNames) {
    const [count, more] = [one.tokens[name], other.tokens[name]]
    if (count === null || more === null) tokens[name] = null
    else {
      // If only one usage has a count, the result is unknown.
      const sum = (count ?? Number.NaN) + sign * (more ?? Number.NaN)
      if (sum >= 0) tokens[name] = sum
    }
  }
  const amount = one.cost && other.cost ? one.cost.amount + BigInt(sign) * other.cost.amount : -1n
  return { tokens, cost: one.cost && amount >= 0n ? { ...one.cost, amount } : undefined }
}

function isOlder(usage: SessionUsage, last: SessionUsage): boolean {
  const isLess = tokenNames.some((name) => (usage.tokens[name] ?? Infinity) < (last.tokens[name] ?? 0))
  const isMore = tokenNames.some((name) => (usage.tokens[name] ?? 0) > (last.tokens[name] ?? Infinity))
  return isLess && !isMore
}
