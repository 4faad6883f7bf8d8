import { describe, test } from 'vitest'
import { growsWithItsText } from '../harness/steps.ts'
import { meet, parts, wholes } from './places.ts'

// Each parser has its own test of hostile texts. This test shows that no step around a parser grows faster.
const units = ['{"a":', '\\"', '5\n', '<title', '\u001b[']

describe.each(Object.entries({ ...wholes, ...parts }))('P43: %s', (_, place) => {
  test.each(units)('P43: this input takes time linear in its length, full of %j', (unit) =>
    growsWithItsText((size) => meet(place, Buffer.alloc(size, unit))),
  )
})
