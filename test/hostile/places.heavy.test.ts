import { describe, test } from 'vitest'
import { loneSurrogate, long, meet, odd, parts, units, wholes } from './places.ts'

const mebibyte = (unit: string | Buffer) => Buffer.alloc(2 ** 20, unit)

describe.each(Object.entries(wholes))('P40: %s', (_, place) => {
  test.each(units)('P40: this input of 1 MiB of %j causes no bug', (unit) => meet(place, mebibyte(unit)))
  test('P40: this input of 1 MiB of lone surrogates causes no bug', () =>
    meet(place, mebibyte(loneSurrogate)))
  test.each([...odd, ...long].map((text) => [text.slice(0, 60), text]))(
    'P40: this input causes no bug: %s',
    (_, text) => meet(place, text),
  )
})

describe.each(Object.entries(parts))('P41: %s', (_, place) => {
  test.each(units)('P41: this field of 1 MiB of %j causes no bug', (unit) => meet(place, mebibyte(unit)))
})
