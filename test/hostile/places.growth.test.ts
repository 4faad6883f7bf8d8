import { describe, test } from 'vitest'
import { growsWithItsText } from '../harness/steps.ts'
import { meet, parts, wholes } from './places.ts'

// What a text can be full of is tried at each parser. Here nothing before or behind a parser may grow faster.
const units = ['{"a":', '\\"', '5\n', '<title', '\u001b[']

describe.each(Object.entries({ ...wholes, ...parts }))('P43: %s', (_, place) => {
  test.each(units)('takes work in proportion to its length, full of %j', (unit) =>
    growsWithItsText((size) => meet(place, Buffer.alloc(size, unit))),
  )
})
