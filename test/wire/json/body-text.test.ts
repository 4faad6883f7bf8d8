import { expect, test } from 'vitest'
import { createBodyText, maxTextLength } from '../../../src/wire/json/body-text.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('a body is refused if its text, or its bytes, are longer than a string can be', () => {
  expect(createBodyText(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => createBodyText(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => createBodyText(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('what else goes wrong while a body is spelled is not said to be its length', () => {
  expect(() => createBodyText(() => JSON.parse('{'))).toThrow(SyntaxError)
})
