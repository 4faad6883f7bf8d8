import { describe, test } from 'vitest'
import { loneSurrogate, long, meet, odd, parts, units, wholes } from './places.ts'

const mebibyte = (unit: string | Buffer) => Buffer.alloc(2 ** 20, unit)

describe.each(Object.entries(wholes))('P40: %s', (_, place) => {
  test.each(units)('1 MiB of %j', (unit) => meet(place, mebibyte(unit)))
  test('1 MiB of lone surrogates', () => meet(place, mebibyte(loneSurrogate)))
  test.each([...odd, ...long].map((text) => [text.slice(0, 60), text]))('odd JSON: %s', (_, text) =>
    meet(place, text),
  )
})

describe.each(Object.entries(parts))('P41: %s', (_, place) => {
  test.each(units)('1 MiB of %j', (unit) => meet(place, mebibyte(unit)))
})
