import { describe, test } from 'vitest'
import { expectLinearWork } from '../harness/steps.ts'
import { partialInputs, runWithText, wholeInputs } from './places.ts'

// Each parser has a separate test with hostile texts. This test shows that the code around the parsers takes
// linear time too.
const units = ['{"a":', '\\"', '5\n', '<title', '\u001b[']

describe.each(Object.entries({ ...wholeInputs, ...partialInputs }))('P43: %s', (name, place) => {
  test.each(units)(`P43: parley reads ${name} full of %j in linear time`, (unit) =>
    expectLinearWork((size) => runWithText(place, Buffer.alloc(size, unit))),
  )
})
