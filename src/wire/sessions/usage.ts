import { isObject } from '../json/parse.ts'
import { readTokenCounts, type TokenCounts } from '../token-count.ts'

/** An amount in minor units of a currency: 187 and `USD` mean $1.87. */
export interface Money {
  amount: bigint
  currency: string
}

/** Usage of a session, or of one model request (src/wire/README.md: public clients, 9). */
export interface SessionUsage {
  tokens: TokenCounts
  cost?: Money | undefined
}

/**
 * `value` is the `usage` of a session or of a `session.usage` event, or the `model_usage` of a request.
 * Returns `undefined` if it has no known field.
 */
export function readSessionUsage(value: unknown): SessionUsage | undefined {
  if (!isObject(value)) return undefined
  const counts = Object.entries(readTokenCounts(value)).filter(([, count]) => count !== undefined)
  const cost = readMoney(value.list_cost)
  return counts.length > 0 || cost ? { tokens: Object.fromEntries(counts), cost } : undefined
}

function readMoney(value: unknown): Money | undefined {
  if (!isObject(value)) return undefined
  const { amount, currency } = value
  const isAmount = typeof amount === 'string' && /^\d{1,30}$/.test(amount)
  const isCurrency = typeof currency === 'string' && /^[A-Za-z]{3}$/.test(currency)
  return isAmount && isCurrency ? { amount: BigInt(amount), currency: currency.toUpperCase() } : undefined
}
