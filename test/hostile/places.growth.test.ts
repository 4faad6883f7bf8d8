import { describe, test } from 'vitest'
import { growsWithItsText } from '../harness/steps.ts'
import { parts, runWithText, wholes } from './places.ts'

// Each parser has its own test of hostile texts. This test shows that no step around a parser grows faster.
const units = ['{"a":', '\\"', '5\n', '<title', '\u001b[']

describe.each(Object.entries({ ...wholes, ...parts }))('P43: %s', (name, place) => {
  test.each(units)(`P43: ${name} full of %j takes time linear in its length`, (unit) =>
    growsWithItsText((size) => runWithText(place, Buffer.alloc(size, unit))),
  )
})
