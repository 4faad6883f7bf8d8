import { expect, test } from 'vitest'
import { BatchTally } from '../../src/batch/input.ts'
import { formatBatchProgress, formatBatchSummary } from '../../src/batch/reporter.ts'

const toTally = (counts: Partial<BatchTally>) => Object.assign(new BatchTally(), { hasLine: true }, counts)

const failures = { service: 3, refused: 1 }
const tally = { ok: 380, failed: 4, failures, skipped: 1000, tokens: 1_234_567 }
const counts = '380 ok · 4 failed (3 service, 1 refused) · 1,000 already done'

test.each([
  [
    'counts, remaining time, rate and tokens',
    { ...tally, total: 2000 },
    40,
    0,
    '1,384 of 2,000 done · 4 failed · 1 min 5 s left · 9.6/s · 1,234,567 tokens',
  ],
  ['no rate before the first result', { total: 5 }, 0, 0, '0 of 5 done'],
  ['no total before the end of a pipe', { ok: 3 }, 60, 0, '3 done · 3.0/min'],
  ['the remaining time of a pause', { ok: 3 }, 60, 11.2, '3 done · paused for 12 s · 3.0/min'],
])('the progress line of a batch shows %s', (_, tally, passedSeconds, pauseSeconds, text) =>
  expect(formatBatchProgress(toTally(tally), passedSeconds, pauseSeconds)).toBe(text),
)

test.each([
  [
    'kinds of failures, unfinished lines and tokens',
    { ...tally, total: 2000 },
    40,
    `${counts} · 616 not done · 1,234,567 tokens · 40 s`,
  ],
  [
    'the tokens of this run and of all runs',
    { ...tally, earlierTokens: 79, hasUncountedAnswer: true },
    40,
    `${counts} · at least 1,234,488 tokens in this run, 1,234,567 in all · 40 s`,
  ],
  ['lines with a warning', { ok: 3, warned: 2 }, 1, '3 ok (2 with a warning) · 0 failed · 1 s'],
  ['unknown tokens', { ok: 3, hasUncountedAnswer: true }, 1, '3 ok · 0 failed · unknown tokens · 1 s'],
  ['hours and minutes', { ok: 2 }, 7325, '2 ok · 0 failed · 2 h 2 min'],
])('the last message of a batch shows %s', (_, tally, seconds, text) =>
  expect(formatBatchSummary(toTally(tally), seconds)).toBe(text),
)
