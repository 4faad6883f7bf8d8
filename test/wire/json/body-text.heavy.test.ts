import { expect, test } from 'vitest'
import { createTextWithinLimit, maxTextLength } from '../../../src/wire/json/body-text.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('parley exits with 2 for a body that exceeds the maximum string length of Node', () => {
  expect(createTextWithinLimit(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => createTextWithinLimit(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => createTextWithinLimit(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('if building a body fails for another reason than its length, the original error is thrown', () => {
  expect(() => createTextWithinLimit(() => JSON.parse('{'))).toThrow(SyntaxError)
})
