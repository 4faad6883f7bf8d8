import { describe, expect, test } from 'vitest'
import { answering, message, run } from '../harness/run.ts'
import { meet, parts, uglyWords, wholes } from './places.ts'

describe.each(Object.entries(wholes))('P40: %s', (_, place) => {
  test.each(uglyWords)('the word %j', (word) => meet(place, word))
})

describe.each(Object.entries(parts))('P41: %s', (_, place) => {
  test.each(uglyWords)('the word %j', (word) => meet(place, word))
})

test.each([
  ['content-encoding', 'chat'],
  ['content-type', 'chat'],
  ['retry-after', 'chat'],
])('P42: ugly words as %s', async (name, command) => {
  for (const word of uglyWords) {
    for (const status of [200, 400]) {
      const exchange = answering(message('a'), { status, headers: { [name]: word } })
      await meet(() => ({ argv: [command, 'hi'], world: { exchange } }), '')
    }
  }
})

test.each(uglyWords.slice(0, -1))('P42: the typed word %s', async (word) => {
  const cases = [
    [word],
    ['help', word],
    ['events', word],
    ['help', 'events', word],
    ['config', 'set', word, 'x'],
  ]
  for (const argv of [...cases, ['config', 'get', word], ['chat', 'hi', '--profile', word]]) {
    const { code, err } = await run(argv)
    expect([2, 3], `${argv.join(' ')}: ${err}`).toContain(code)
  }
})
