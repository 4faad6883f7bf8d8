import { describe, test } from 'vitest'
import { loneSurrogate, long, odd, parts, runWithText, units, wholes } from './places.ts'

const mebibyte = (unit: string | Buffer) => Buffer.alloc(2 ** 20, unit)

describe.each(Object.entries(wholes))('P40: %s', (name, place) => {
  test.each(units)(`P40: parley handles 1 MiB of %j as ${name}`, (unit) => runWithText(place, mebibyte(unit)))
  test(`P40: parley handles 1 MiB of lone surrogates as ${name}`, () =>
    runWithText(place, mebibyte(loneSurrogate)))
  test.each([...odd, ...long].map((text) => [text.slice(0, 60), text]))(
    `P40: parley handles odd JSON as ${name}: %s`,
    (_, text) => runWithText(place, text),
  )
})

describe.each(Object.entries(parts))('P41: %s', (name, place) => {
  test.each(units)(`P41: parley handles 1 MiB of %j as ${name}`, (unit) => runWithText(place, mebibyte(unit)))
})
