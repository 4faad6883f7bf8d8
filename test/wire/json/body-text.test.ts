import { expect, test } from 'vitest'
import { createBodyText, maxTextLength } from '../../../src/wire/json/body-text.ts'

const tooLong = 'the request is longer than 512 MiB, the most that can be sent'

test('parley exits with 2 for a body that exceeds the maximum string length of Node', () => {
  expect(createBodyText(() => '{"text":"é"}')).toBe('{"text":"é"}')
  expect(() => createBodyText(() => 'x'.repeat(maxTextLength + 1))).toThrow(tooLong)
  expect(() => createBodyText(() => 'é'.repeat(maxTextLength / 2 + 1))).toThrow(tooLong)
})

test('a failure while a body is encoded has its own reason', () => {
  expect(() => createBodyText(() => JSON.parse('{'))).toThrow(SyntaxError)
})
