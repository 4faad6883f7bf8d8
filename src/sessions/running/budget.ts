import { tokensInWords } from '../../content/tokens.ts'
import { formatMoney, toMinorUnits } from '../../io/money.ts'
import type { UsageFigures } from '../../summary.ts'
import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import { addTokens, type TokenCount, type TokenCounts } from '../../wire/token-count.ts'

/** The most that a run may use. */
export interface BoundFlags {
  maxTotalTokens?: number
  /** As it was given, in major units. */
  maxCost?: string
}

/** Whether a run may use only so much. */
export const hasBounds = ({ maxTotalTokens, maxCost }: BoundFlags): boolean =>
  maxTotalTokens !== undefined || maxCost !== undefined

/** The usage of a new session. */
const unused = 'unused'

/**
 * What a run and its session have used, by the session's events, and whether the run is over its bounds. Of these two the
 * first counts that the service tells:
 *
 *   - the difference of two usages of the whole session: the last one before the run, and the newest. A new session had
 *     used nothing. If an older session told no usage before the run, the run's figures are unknown
 *   - the sum of the usages of the run's model requests, if each request tells its own
 */
export class Budget {
  readonly #flags: BoundFlags
  /** The newest usage of the whole session. */
  #session: SessionUsage | undefined
  /** The agent has worked since the run began or, before it does, ever. */
  #hasWorked = false
  /** The agent has worked since the service told the newest usage. */
  #isBehind = false
  readonly #currencies = new Set<string>()
  /** The session's usage when the run began; `undefined` if it is not known. */
  #base: SessionUsage | typeof unused | undefined = unused
  /** The service has told a total usage of the session since the run began. */
  isTold = false
  /** The sum of the run's requests. */
  #requests: SessionUsage | undefined
  #lacksRequest = false
  /** The tokens of the run's requests, as far as they can be read. */
  #readTokens: number | undefined

  constructor(flags: BoundFlags = {}) {
    this.#flags = flags
  }

  /** The run begins: nothing that came before counts for it. */
  begin(hasTask: boolean): void {
    const isKnown = hasTask || !this.#isBehind
    this.#base = isKnown ? (this.#session ?? (this.#hasWorked ? undefined : unused)) : undefined
    this.#hasWorked = false
    this.isTold = false
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

  /** Adds the session's total usage. A total that is older than the newest one is ignored. */
  addSession(usage: SessionUsage | undefined): void {
    if (!usage || (this.#session && isOlder(usage, this.#session))) return
    this.#noteCurrency(usage)
    this.#session = usage
    this.#isBehind = false
    this.isTold = true
  }

  /** Adds the session's total usage at the beginning of the run. */
  addBase(usage: SessionUsage | undefined): void {
    this.addSession(usage)
    if (usage) this.begin(false)
  }

  /** The session's usage at the beginning of the run is not known. */
  get lacksBase(): boolean {
    return this.#base === undefined
  }

  get run(): UsageFigures {
    return this.#lacksSome ? {} : this.#told
  }

  get session(): UsageFigures {
    return this.#inFigures(this.#session)
  }

  /** Why the run is over its bounds, in words; absent if it is within them. */
  exceeded(): string | undefined {
    const { maxTotalTokens = Infinity, maxCost } = this.#flags
    const tokens = this.#leastTokens ?? -1
    const { cost } = this.#told
    const atLeast = this.#lacksSome || this.#told.tokens?.totalTokens === null ? 'at least ' : ''
    if (tokens >= maxTotalTokens)
      return `the run took ${atLeast}${tokensInWords(tokens)}, and --max-total-tokens is ${maxTotalTokens}`
    if (maxCost === undefined || !cost || cost.amount < toMinorUnits(maxCost, cost.currency).amount)
      return undefined
    return `the run cost ${atLeast}${formatMoney(cost)}, and --max-cost is ${maxCost}`
  }

  /** What `--max-cost` counts as, in words, if the currency has fewer decimals. */
  get rounding(): string | undefined {
    const { maxCost } = this.#flags
    const { cost } = this.#told
    if (maxCost === undefined || !cost) return undefined
    const { amount, isExact } = toMinorUnits(maxCost, cost.currency)
    return isExact ? undefined : `--max-cost ${maxCost} counts as ${formatMoney({ ...cost, amount })}`
  }

  /** Which bounds cannot be kept although the session has worked, in words. */
  get lack(): string | undefined {
    if (!this.#hasWorked) return undefined
    const { tokens, cost } = this.run
    const lacksTokens = this.#flags.maxTotalTokens !== undefined && typeof tokens?.totalTokens !== 'number'
    const lacksCost = this.#flags.maxCost !== undefined && !cost
    const flags = [...(lacksTokens ? ['--max-total-tokens'] : []), ...(lacksCost ? ['--max-cost'] : [])]
    if (flags.length === 0) return undefined
    return `${flags.join(' and ')} cannot be kept: the service does not tell what the run uses`
  }

  /** The tokens that the run has used at least. */
  get #leastTokens(): number | undefined {
    const { tokens } = this.#told
    return this.isTold ? tokens && readable(tokens) : this.#readTokens
  }

  /** A request has not told its usage, and no total tells it. */
  get #lacksSome(): boolean {
    return !this.isTold && this.#lacksRequest
  }

  get #told(): UsageFigures {
    if (!this.isTold) return this.#inFigures(this.#requests)
    if (!this.#session || this.#base === undefined) return {}
    return this.#inFigures(this.#base === unused ? this.#session : combine(this.#session, this.#base, -1))
  }

  #addRequest(usage: SessionUsage | undefined): void {
    if (!usage) {
      this.#lacksRequest = true
      return
    }
    this.#noteCurrency(usage)
    this.#requests = this.#requests ? combine(this.#requests, usage, 1) : usage
    this.#readTokens = (this.#readTokens ?? 0) + readable(usage.tokens)
  }

  #noteCurrency({ cost }: SessionUsage): void {
    if (cost) this.#currencies.add(cost.currency)
  }

  /** The total is the sum of the counts that are told. Two currencies have no sum. */
  #inFigures(usage: SessionUsage | undefined): UsageFigures {
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
] as const satisfies (keyof TokenCounts)[]

const readable = (tokens: TokenCounts): number =>
  names.reduce((total, name) => total + (tokens[name] ?? 0), 0)

/**
 * The sum or the difference of what both tell: null if one of two counts cannot be read. What is less than nothing is not of
 * one session.
 */
function combine(one: SessionUsage, other: SessionUsage, sign: 1 | -1): SessionUsage {
  const tokens: TokenCounts = {}
  for (const name of names) {
    const [count, more] = [one.tokens[name], other.tokens[name]]
    if (count === null || more === null) tokens[name] = null
    else {
      // What only one of them tells is not known, and neither is their sum.
      const sum = (count ?? Number.NaN) + sign * (more ?? Number.NaN)
      if (sum >= 0) tokens[name] = sum
    }
  }
  const amount = one.cost && other.cost ? one.cost.amount + BigInt(sign) * other.cost.amount : -1n
  return { tokens, cost: one.cost && amount >= 0n ? { ...one.cost, amount } : undefined }
}

function isOlder(usage: SessionUsage, last: SessionUsage): boolean {
  const isLess = names.some((name) => (usage.tokens[name] ?? Infinity) < (last.tokens[name] ?? 0))
  const isMore = names.some((name) => (usage.tokens[name] ?? 0) > (last.tokens[name] ?? Infinity))
  return isLess && !isMore
}
