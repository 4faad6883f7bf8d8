import { expect, test } from 'vitest'
import { piece, whole } from '../gateway/parts.ts'
import { answering, message, readJson, run, temporaryFolder } from '../harness/run.ts'

const native = (usageMetadata: object) => piece('Hi', whole, { usageMetadata })
const both = { input_tokens: 10, output_tokens: 10 }
const cached = { ...both, cache_read_input_tokens: 150_000, cache_creation_input_tokens: 50_000 }
const split = { ...both, cache_creation: { ephemeral_5m_input_tokens: 300, ephemeral_1h_input_tokens: 4000 } }
const counts = { promptTokenCount: 4, candidatesTokenCount: 5 }

test.each<[what: string, body: string, total: number | null, footer: string]>([
  ['only input tokens', message('Hi', { usage: { input_tokens: 10 } }), null, '· 10 tokens in ·'],
  ['only input tokens in usageMetadata', native({ promptTokenCount: 4 }), null, '· 4 tokens in ·'],
  ['only a total', native({ totalTokenCount: 1000 }), 1000, '· 1,000 tokens in all ·'],
  [
    'a total that exceeds the sum of its parts',
    native({ ...counts, totalTokenCount: 1000 }),
    1000,
    '· 4 tokens in · 5 out · 1,000 in all ·',
  ],
  [
    'usageMetadata, whose prompt count includes cached tokens',
    native({ ...counts, thoughtsTokenCount: 6, cachedContentTokenCount: 3 }),
    15,
    '· 4 tokens in · 11 out · 3 cached · 6 for thoughts ·',
  ],
  [
    'tokens read from and written to the cache',
    message('Hi', { usage: cached }),
    200_020,
    '· 10 tokens in · 10 out · 200,020 in all · 150,000 cached · 50,000 written to the cache ·',
  ],
  [
    'cache counts that are split by lifetime',
    message('Hi', { usage: split }),
    4320,
    '· 10 tokens in · 10 out · 4,320 in all · 4,300 written to the cache ·',
  ],
  [
    "results of the service's tools, which count as input, and a total that implies the output",
    native({ promptTokenCount: 4, toolUsePromptTokenCount: 30, totalTokenCount: 39 }),
    39,
    '· 34 tokens in · 5 out ·',
  ],
])('parley counts the total tokens if the answer has %s', async (_, body, total, footer) => {
  const cwd = temporaryFolder()
  const exchange = answering(body)
  const { code, err } = await run(['chat', 'x', '--usage', '--report', 'r'], { cwd, exchange })
  expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining(footer) })
  expect(readJson(cwd, 'r').usage.totalTokens).toBe(total)
})
