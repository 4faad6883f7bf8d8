import { describe, expect, test } from 'vitest'
import { formatAnswer, formatFailure } from '../../src/batch/result-line.ts'
import { formatEnd, formatProgress } from '../../src/batch/tally.ts'
import { nothingSpent } from '../../src/content/spending.ts'

describe('a result line', () => {
  const took = { seconds: 1.5 }
  const rest = { model: 'm', stopReason: 'end_turn', ...took }
  const usage = { inputTokens: 1, totalTokens: 3 }
  const unmetered = { spent: { attempts: 2, answers: 1, unmetered: 1, usage: {} } }
  const metered = { spent: { attempts: 2, answers: 1, unmetered: 0, usage } }

  test.each([
    [
      { index: 1, hash: 'h', ...metered },
      { content: { text: 'a\n"b"' }, ...rest },
      '{"index":1,"hash":"h","ok":true,"text":"a\\n\\"b\\"","model":"m","stopReason":"end_turn","usage":{"inputTokens":1,"totalTokens":3},"attempts":2,"seconds":1.5}',
    ],
    [
      { index: 2, id: 'a', hash: 'h#2', ...unmetered },
      { content: { files: ['out/002.png'] }, ...took },
      '{"index":2,"id":"a","hash":"h#2","ok":true,"files":["out/002.png"],"attempts":2,"seconds":1.5}',
    ],
    [
      { index: 3, id: 7, hash: 'h', ...unmetered },
      { content: { json: '{\r\n "n": 1.10,\n "s": "a\\n" }\n' }, model: 'm', ...took },
      '{"index":3,"id":7,"hash":"h","ok":true,"json":{ "n": 1.10, "s": "a\\n" },"model":"m","attempts":2,"seconds":1.5}',
    ],
    [
      { index: 4, hash: 'h', ...metered },
      { content: { response: '{"big":12345678901234567890,\n"x":[1e400]}\n' }, ...rest },
      '{"index":4,"hash":"h","ok":true,"response":{"big":12345678901234567890,"x":[1e400]},"attempts":2,"seconds":1.5}',
    ],
  ])('%o', (subject, answer, line) => expect(formatAnswer(subject, answer)).toBe(line))

  test('of a failure', () => {
    const subject = { index: 1, id: 'a', hash: 'h', spent: nothingSpent() }
    expect(formatFailure(subject, { kind: 'service', exit: 7 })).toBe(
      '{"index":1,"id":"a","hash":"h","ok":false,"error":{"kind":"service","exit":7}}',
    )
    expect(formatFailure({ index: 1, hash: 'h', ...metered }, { kind: 'response', exit: 8 })).toBe(
      '{"index":1,"hash":"h","ok":false,"error":{"kind":"response","exit":8},"usage":{"inputTokens":1,"totalTokens":3}}',
    )
  })

  test('a long response with many line breaks is read in one go', () => {
    const response = `[${'\n1,'.repeat(3_000_000)}1]`
    expect(
      formatAnswer({ index: 1, hash: 'h', ...unmetered }, { content: { response }, ...took }),
    ).toHaveLength(6_000_074)
  })
})

describe('the progress line', () => {
  const tally = { ok: 380, failed: 4, skipped: 1000, tokens: 1_234_567 }

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
    const none = { ok: 0, failed: 0, skipped: 0, tokens: 0 }
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
    [{ tally: { ok: 2, failed: 0, skipped: 0, tokens: 0 }, seconds: 7325 }, '2 ok · 0 failed · 2 h 2 min'],
  ])('at the end: %o', (standing, text) => expect(formatEnd(standing)).toBe(text))
})
