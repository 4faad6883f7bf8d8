import { describe, test } from 'vitest'
import { expectLinearWork } from '../harness/steps.ts'
import { expectNoCrash, partialInputs, wholeInputs } from './places.ts'

// Each parser has its own test of linear time. These texts test the code around the parsers.
const repeatedTexts = ['{"a":', '\\"', '5\n', '<title', '\u001b[']

describe.each(Object.entries({ ...wholeInputs, ...partialInputs }))('P43: %s', (name, input) => {
  test.each(repeatedTexts)(`P43: parley reads ${name} in linear time if it consists of repeated %j`, (text) =>
    expectLinearWork((size) => expectNoCrash(input, Buffer.alloc(size, text))),
  )
})
