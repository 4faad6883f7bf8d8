import { describe, test } from 'vitest'
import { loneSurrogate, long, odd, parts, runWithText, units, wholes } from './places.ts'

const mebibyte = (unit: string | Buffer) => Buffer.alloc(2 ** 20, unit)

describe.each(Object.entries(wholes))('P40: %s', (name, place) => {
  test.each(units)(`P40: ${name} may be 1 MiB of %j`, (unit) => runWithText(place, mebibyte(unit)))
  test(`P40: ${name} may be 1 MiB of lone surrogates`, () => runWithText(place, mebibyte(loneSurrogate)))
  test.each([...odd, ...long].map((text) => [text.slice(0, 60), text]))(
    `P40: ${name} may be odd JSON: %s`,
    (_, text) => runWithText(place, text),
  )
})

describe.each(Object.entries(parts))('P41: %s', (name, place) => {
  test.each(units)(`P41: ${name} may be 1 MiB of %j`, (unit) => runWithText(place, mebibyte(unit)))
})
