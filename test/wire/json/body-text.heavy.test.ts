import { expect, test } from 'vitest'
import { maxTextLength, requireTextFits } from '../../../src/wire/json/body-text.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('parley exits with 2 for a body that exceeds the maximum string length of Node', () => {
  expect(requireTextFits(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => requireTextFits(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => requireTextFits(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('a body that cannot be encoded for another reason fails with that reason', () => {
  expect(() => requireTextFits(() => JSON.parse('{'))).toThrow(SyntaxError)
})
