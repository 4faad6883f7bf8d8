import { describe, test } from 'vitest'
import {
  loneSurrogate,
  longTexts,
  oddTexts,
  partialInputs,
  prototypeNames,
  runWithText,
  units,
  wholeInputs,
} from './places.ts'

const mebibyte = (unit: string | Buffer) => Buffer.alloc(2 ** 20, unit)

/** Returns all texts in npm run test:night, and otherwise a third of them, a different third for each input. */
const choose = <T>(texts: readonly T[], place: number): T[] =>
  texts.filter((_, index) => process.env.TEST_TIMES !== undefined || (index + place) % 3 === 0)

const numberPlaces = <T>(places: Record<string, T>) =>
  Object.entries(places).map(([name, place], index) => [name, place, index] as const)

describe.each(numberPlaces(wholeInputs))('P40: %s', (name, place, index) => {
  test.each(choose(units, index))(`P40: parley does not crash (exit 1) on 1 MiB of %j as ${name}`, (unit) =>
    runWithText(place, mebibyte(unit)),
  )
  test(`P40: parley does not crash (exit 1) on 1 MiB of lone surrogates as ${name}`, () =>
    runWithText(place, mebibyte(loneSurrogate)))
  test.each(
    choose([...oddTexts, ...longTexts, ...prototypeNames], index).map((text) => [text.slice(0, 60), text]),
  )(`P40: parley does not crash (exit 1) on odd JSON as ${name}: %s`, (_, text) => runWithText(place, text))
})

describe.each(numberPlaces(partialInputs))('P41: %s', (name, place, index) => {
  test.each(choose(units, index))(`P41: parley does not crash (exit 1) on 1 MiB of %j as ${name}`, (unit) =>
    runWithText(place, mebibyte(unit)),
  )
  test.each(prototypeNames)(`P41: parley does not crash (exit 1) on the word %j as ${name}`, (word) =>
    runWithText(place, word),
  )
})
