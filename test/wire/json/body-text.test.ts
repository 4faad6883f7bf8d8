import { expect, test } from 'vitest'
import { createBodyText, maxTextLength } from '../../../src/wire/json/body-text.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('exits with 2 for a body that exceeds the maximum string length', () => {
  expect(createBodyText(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => createBodyText(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => createBodyText(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('reports a failure while encoding a body with its own reason', () => {
  expect(() => createBodyText(() => JSON.parse('{'))).toThrow(SyntaxError)
})
