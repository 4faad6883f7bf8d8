import { expect, test } from 'vitest'
import { type Money, readSessionUsage } from '../../../src/wire/sessions/usage.ts'
import type { TokenCounts } from '../../../src/wire/token-count.ts'

const maxAmount = Number.MAX_SAFE_INTEGER

test.each<[usage: unknown, tokens: TokenCounts | undefined]>([
  [
    {
      input_tokens: 0,
      output_tokens: maxAmount,
      cache_read_input_tokens: -1,
      cache_creation_input_tokens: 4,
    },
    { inputTokens: 0, outputTokens: maxAmount, cacheReadInputTokens: null, cacheCreationInputTokens: 4 },
  ],
  [{ cache_creation: { a: 1, b: 2 }, cache_creation_input_tokens: 9 }, { cacheCreationInputTokens: 3 }],
  [{ cache_creation: { a: 1, b: 'x' }, cache_creation_input_tokens: 9 }, { cacheCreationInputTokens: 9 }],
  [{ cache_creation: { a: 'x' }, cache_creation_input_tokens: 'y' }, { cacheCreationInputTokens: null }],
  [{ cache_creation: {}, cache_creation_input_tokens: 9 }, { cacheCreationInputTokens: 9 }],
  [{ cache_creation: {} }, undefined],
  [{ cache_creation: { a: null, b: 2 } }, { cacheCreationInputTokens: 2 }],
  [{ cache_creation: { a: 'x', b: 2 } }, { cacheCreationInputTokens: null }],
  [
    { input_tokens: '1', output_tokens: 1.5, cache_read_input_tokens: maxAmount + 1 },
    { inputTokens: null, outputTokens: null, cacheReadInputTokens: null },
  ],
  [{ input_tokens: null, output_tokens: undefined }, undefined],
  [{ other: 1 }, undefined],
  [null, undefined],
  [[1], undefined],
])('the token counts %j are read as %j', (usage, tokens) => {
  expect(readSessionUsage(usage)).toStrictEqual(tokens && { tokens, cost: undefined })
})

const longest = '9'.repeat(30)
const money = (amount: unknown, currency: unknown = 'USD') => ({ amount, currency })
test.each<[money: unknown, read: Money | undefined]>([
  [money('187', 'usd'), { amount: 187n, currency: 'USD' }],
  [money(longest, 'EUR'), { amount: BigInt(longest), currency: 'EUR' }],
  ...[
    ...[`${longest}9`, '', '1.5', '-1', ' 1', '1 ', 'x', 187, null].map((amount) => money(amount)),
    ...['US', 'USDT', '', 'U$D', ['USD'], 5, null].map((currency) => money('1', currency)),
    ...['187', null, { amount: '1' }],
  ].map((each): [unknown, undefined] => [each, undefined]),
])('the amount %j is read as %o', (money, read) => {
  expect(readSessionUsage({ list_cost: money })).toStrictEqual(read && { tokens: {}, cost: read })
})
