import { expect, test } from 'vitest'
import { createBodyText, maxTextLength } from '../../../src/wire/json/body-text.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('refuses a body whose text or bytes exceed the maximum string length', () => {
  expect(createBodyText(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => createBodyText(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => createBodyText(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('does not report another failure while encoding a body as its length', () => {
  expect(() => createBodyText(() => JSON.parse('{'))).toThrow(SyntaxError)
})
