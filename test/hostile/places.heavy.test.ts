import { describe, test } from 'vitest'
import {
  expectNoCrash,
  partialInputs,
  prototypeNames,
  repeatedTexts,
  singleTexts,
  wholeInputs,
} from './places.ts'

const fillMebibyte = (text: string | Buffer) => Buffer.alloc(2 ** 20, text)

/** Returns all texts in `npm run test:night`. Otherwise returns a third of them, depending on the input. */
const choose = <T>(texts: readonly T[], inputIndex: number): T[] =>
  texts.filter((_, index) => process.env.TEST_TIMES !== undefined || (index + inputIndex) % 3 === 0)

const addIndexes = <T>(inputs: Record<string, T>) =>
  Object.entries(inputs).map(([name, input], index) => [name, input, index] as const)

describe.each(addIndexes(wholeInputs))('P40: %s', (name, input, index) => {
  test.each(choose(repeatedTexts, index))(`P40: parley does not crash on 1 MiB of %j as ${name}`, (text) =>
    expectNoCrash(input, fillMebibyte(text)),
  )
  test(`P40: parley does not crash (exit 1) on 1 MiB of lone surrogates as ${name}`, () =>
    expectNoCrash(input, fillMebibyte(Buffer.from([0xed, 0xa0, 0x80]))))
  test.each(choose([...singleTexts, ...prototypeNames], index).map((text) => [text.slice(0, 60), text]))(
    `P40: parley does not crash (exit 1) on odd JSON as ${name}: %s`,
    (_, text) => expectNoCrash(input, text),
  )
})

describe.each(addIndexes(partialInputs))('P41: %s', (name, input, index) => {
  test.each(choose(repeatedTexts, index))(`P41: parley does not crash on 1 MiB of %j as ${name}`, (text) =>
    expectNoCrash(input, fillMebibyte(text)),
  )
  test.each(prototypeNames)(`P41: parley does not crash (exit 1) on the word %j as ${name}`, (word) =>
    expectNoCrash(input, word),
  )
})
