import { formatTokenCount } from '../../content/tokens.ts'
import { formatMoney, toMinorUnits } from '../../io/money.ts'
import type { UsageAndCost } from '../../report-data.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { readSessionUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import { computeTotalTokens, type TokenCounts } from '../../wire/token-count.ts'
import type { RunPlan } from './plan.ts'

/** Start total of a session that used nothing before the run. */
const noUsage = 'no usage'

/**
 * Computes from events the usage of a run and of its session, and whether the run has exceeded a limit.
 * A service may report the total usage of the session, the usage of each model request, or both. The usage
 * of the run is:
 *
 * - if the service reports totals: the session's newest total minus the session's total before the run. A
 *   new session starts at 0. If an older session reported no total before the run, the usage of the run is
 *   unknown
 * - otherwise: the sum of the usages of the run's model requests
 */
export class UsageMeter {
  readonly #limits: Partial<RunPlan['limits']>
  #newestTotal: SessionUsage | undefined
  /** True if the agent has worked. `startRun` resets this flag. */
  #hasWorked = false
  /** True if the agent has worked since the service reported the newest total. */
  #isOutdated = false
  #startTotal: SessionUsage | typeof noUsage | undefined = noUsage
  hasTotal = false
  /**
   * Sums of the usage of the run's model requests. `lacksUsage`: the service did not report the usage of at
   * least one request.
   */
  #requests: { usage?: SessionUsage; lacksUsage?: true; readableTokens?: number } = {}

  constructor(limits: Partial<RunPlan['limits']> = {}) {
    this.#limits = limits
  }

  get hasLimits(): boolean {
    return this.#limits.maxTotalTokens !== undefined || this.#limits.maxCost !== undefined
  }

  startRun(hasTask: boolean): void {
    const isKnown = hasTask || !this.#isOutdated
    this.#startTotal = isKnown ? (this.#newestTotal ?? (this.#hasWorked ? undefined : noUsage)) : undefined
    this.#hasWorked = false
    this.hasTotal = false
    this.#requests = {}
  }

  add(event: SessionEvent): void {
    const { type } = event
    if (/^(agent|span)\.|^session\.status_running$/.test(type)) {
      this.#hasWorked = true
      this.#isOutdated = true
    }
    if (type === 'session.usage') this.addTotal(readSessionUsage(event.usage))
    if (type === 'span.model_request_end') this.#addRequest(readSessionUsage(event.model_usage))
  }

  /** Ignores a lower total, because it is older: the total of a session only grows. */
  addTotal(usage: SessionUsage | undefined): void {
    if (!usage || (this.#newestTotal && isOlder(usage, this.#newestTotal))) return
    this.#newestTotal = usage
    this.#isOutdated = false
    this.hasTotal = true
  }

  get isStartTotalUnknown(): boolean {
    return this.#startTotal === undefined
  }

  get runUsage(): UsageAndCost {
    return this.#lacksUsage ? {} : this.#reported
  }

  get sessionUsage(): UsageAndCost {
    return toFigures(this.#newestTotal)
  }

  describeExceededLimit(): string | undefined {
    const { maxTotalTokens = Infinity, maxCost } = this.#limits
    const { tokens: reported, cost } = this.#reported
    const readable = this.hasTotal ? reported && sumReadable(reported) : this.#requests.readableTokens
    const tokens = readable ?? -1
    const isPartial = this.#lacksUsage || typeof reported?.totalTokens !== 'number'
    const atLeast = isPartial ? 'at least ' : ''
    if (tokens >= maxTotalTokens)
      return `the run used ${atLeast}${formatTokenCount(tokens)}, and --max-total-tokens is ${maxTotalTokens}`
    if (maxCost === undefined || !cost || cost.amount < toMinorUnits(maxCost, cost.currency)) return undefined
    return `the run cost ${this.#lacksUsage ? 'at least ' : ''}${formatMoney(cost)}, and --max-cost is ${maxCost}`
  }

  get limitWarning(): string | undefined {
    if (!this.#hasWorked) return undefined
    const { tokens, cost } = this.runUsage
    const lacksTokens = this.#limits.maxTotalTokens !== undefined && typeof tokens?.totalTokens !== 'number'
    const lacksCost = this.#limits.maxCost !== undefined && !cost
    const flags = [...(lacksTokens ? ['--max-total-tokens'] : []), ...(lacksCost ? ['--max-cost'] : [])]
    if (flags.length === 0) return undefined
    const unknown = typeof tokens?.totalTokens === 'number' ? 'cost' : 'usage'
    return `${flags.join(' and ')} cannot be enforced: the service does not report the ${unknown} of the run`
  }

  get #lacksUsage(): boolean {
    return !this.hasTotal && this.#requests.lacksUsage === true
  }

  get #reported(): UsageAndCost {
    if (!this.hasTotal) return toFigures(this.#requests.usage)
    if (!this.#newestTotal || this.#startTotal === undefined) return {}
    return toFigures(
      this.#startTotal === noUsage ? this.#newestTotal : combine(this.#newestTotal, this.#startTotal, -1),
    )
  }

  #addRequest(usage: SessionUsage | undefined): void {
    const { usage: before, readableTokens = 0 } = this.#requests
    if (!usage) this.#requests.lacksUsage = true
    else {
      this.#requests.usage = before ? combine(before, usage, 1) : usage
      this.#requests.readableTokens = readableTokens + sumReadable(usage.tokens)
    }
  }
}

function toFigures({ tokens, cost }: Partial<SessionUsage> = {}): UsageAndCost {
  const hasCounts = tokens && Object.keys(tokens).length > 0
  return { tokens: hasCounts ? { ...tokens, totalTokens: computeTotalTokens(tokens) } : undefined, cost }
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
 * Adds two usages or, with the sign -1, subtracts them. A count that is null (unreadable) in one usage is
 * null in the result. Omits a negative difference, because the usages then belong to different sessions.
 * Omits the cost if the currencies differ.
 */
function combine(one: SessionUsage, other: SessionUsage, sign: 1 | -1): SessionUsage {
  const tokens: TokenCounts = {}
  for (const name of tokenNames) {
    const [count, more] = [one.tokens[name], other.tokens[name]]
    if (count === null || more === null) tokens[name] = null
    else {
      // If only one usage has the count, the result is NaN and omitted.
      const sum = (count ?? Number.NaN) + sign * (more ?? Number.NaN)
      if (sum >= 0) tokens[name] = sum
    }
  }
  if (!one.cost || one.cost.currency !== other.cost?.currency) return { tokens }
  const amount = one.cost.amount + BigInt(sign) * other.cost.amount
  return { tokens, cost: amount >= 0n ? { ...one.cost, amount } : undefined }
}

function isOlder(usage: SessionUsage, last: SessionUsage): boolean {
  const isLess = tokenNames.some((name) => (usage.tokens[name] ?? Infinity) < (last.tokens[name] ?? 0))
  const isMore = tokenNames.some((name) => (usage.tokens[name] ?? 0) > (last.tokens[name] ?? Infinity))
  return isLess && !isMore
}
