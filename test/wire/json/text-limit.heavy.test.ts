import { expect, test } from 'vitest'
import { createTextWithinLimit, maxTextLength } from '../../../src/wire/json/text-limit.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('parley exits with 2 for a body that exceeds the maximum string length of Node', () => {
  expect(createTextWithinLimit(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => createTextWithinLimit(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => createTextWithinLimit(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('parley throws the original error if building a body fails for a reason other than its length', () => {
  expect(() => createTextWithinLimit(() => JSON.parse('{'))).toThrow(SyntaxError)
})
