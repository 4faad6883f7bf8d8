import { formatNumber, formatTokenUsage } from '../content/tokens.ts'
import { formatMoney } from '../io/money.ts'
import type { SessionUsage } from '../wire/sessions/usage.ts'

/** Formats usage for a person, such as `12,282 tokens in · 408 out · $1.87`. */
export function describeSessionUsage({ tokens = {}, cost }: Partial<SessionUsage>): string {
  const { cacheReadInputTokens: cached } = tokens
  return [
    ...formatTokenUsage(tokens),
    cached ? `${formatNumber(cached)} cached` : undefined,
    cost && formatMoney(cost),
  ]
    .filter((part) => part !== undefined)
    .join(' · ')
}
