import { describe, expect, test } from 'vitest'
import { formatEnd, formatProgress } from '../../src/batch/report.ts'

describe('the progress line', () => {
  const tally = { ok: 380, failed: 4, skipped: 1000, tokens: 1_234_567, earlierTokens: 0 }

  test.each([
    [80, '1,384 of 2,000 done · 4 failed · 1 min 5 s left · 9.6/s · 1,234,567 tokens'],
    [60, '1,384 of 2,000 done · 4 failed · 1 min 5 s left · 9.6/s'],
    [40, '1,384 of 2,000 done · 4 failed'],
    [10, '1,384 of 2'],
    [0, ''],
  ])('in %i columns', (width, text) => {
    expect(formatProgress({ tally, lines: 2000, seconds: 40 }, width)).toBe(text)
  })

  test('where little is known', () => {
    const none = { ok: 0, failed: 0, skipped: 0, tokens: 0, earlierTokens: 0 }
    expect(formatProgress({ tally: none, lines: 5, seconds: 0 }, 80)).toBe('0 of 5 done')
    expect(formatProgress({ tally: { ...none, ok: 3 }, seconds: 60 }, 80)).toBe('3 done · 3.0/min')
  })

  test('in a pause', () => {
    expect(formatProgress({ tally, lines: 2000, seconds: 40, pause: 11.2 }, 60)).toBe(
      '1,384 of 2,000 done · 4 failed · paused for 12 s',
    )
  })

  test.each([
    [
      { tally, lines: 2000, seconds: 40 },
      '380 ok · 4 failed · 1,000 done before · 616 not done · 1,234,567 tokens · 40 s',
    ],
    [
      { tally: { ...tally, earlierTokens: 79 }, lines: 1384, seconds: 40 },
      '380 ok · 4 failed · 1,000 done before · 1,234,567 tokens in all · 40 s',
    ],
    [
      { tally: { ok: 2, failed: 0, skipped: 0, tokens: 0, earlierTokens: 0 }, seconds: 7325 },
      '2 ok · 0 failed · 2 h 2 min',
    ],
  ])('at the end: %o', (standing, text) => expect(formatEnd(standing)).toBe(text))
})
