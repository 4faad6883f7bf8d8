import { describe, expect, test } from 'vitest'
import type { JsonSplitter } from '../../../src/wire/json/splitter.ts'
import { createJsonArraySplitter, createJsonSequenceSplitter } from '../../../src/wire/json/splitter.ts'
import { cutsOf } from './texts.ts'

function split(create: () => JsonSplitter, pieces: string[]) {
  const splitter = create()
  const values = pieces.flatMap((piece) => splitter.push(piece))
  return { values, rest: splitter.rest(), isInside: splitter.isInside() }
}

interface Splitting {
  values?: string[]
  rest?: string
  closed?: boolean
}

const arrays: [text: string, splitting: Splitting][] = [
  ['', {}],
  [' [ ', {}],
  ['[1', { rest: '1' }],
  ['[1 , 2 ,', { values: ['1', '2'] }],
  ['[1 , 2 ]', { values: ['1', '2'], closed: true }],
  ['[]', { closed: true }],
  ['[1]]],2,{"a":1}', { values: ['1'], closed: true }],
  ['[[1,[2]],{"a":[3]},"x,]"]', { values: ['[1,[2]]', '{"a":[3]}', '"x,]"'], closed: true }],
  ['[{"a":"\\"}",\n"b":1}\n{}', { values: ['{"a":"\\"}",\n"b":1}', '{}'] }],
  ['[1{"a":1}', { values: ['1', '{"a":1}'] }],
  ['[{"a":[1 ', { rest: '{"a":[1' }],
  ['[{"a":1} ', { values: ['{"a":1}'] }],
  ['[}1,2]', { values: ['}1', '2'], closed: true }],
  ['[{]]', { values: ['{]'], closed: true }],
  ['x[1,', { values: ['x', '1'] }],
]

const sequences: [text: string, splitting: Splitting][] = [
  ['', {}],
  [' \r\n\t', {}],
  ['{"a":1}{"b":\n2} [3]\n', { values: ['{"a":1}', '{"b":\n2}', '[3]'] }],
  ['{"a":1} ', { values: ['{"a":1}'] }],
  ['1, 2\r\n"a" \n', { values: ['1, 2', '"a"'] }],
  ['null{}x', { values: ['null', '{}'], rest: 'x' }],
  ['{"a":"}\\"{', { rest: '{"a":"}\\"{' }],
  ['[1],\n', { values: ['[1]', ','] }],
  [']}\n{}', { values: [']}', '{}'] }],
  ['[1]\n\n[2] {', { values: ['[1]', '[2]'], rest: '{' }],
]

describe.each([
  ['an array', createJsonArraySplitter, arrays],
  ['a sequence', createJsonSequenceSplitter, sequences],
] as const)('values of %s that arrives in chunks', (_, create, rows) => {
  test.each(rows)('the text %j is split into the same JSON values however it arrives', (text, splitting) => {
    const { values = [], rest = '', closed = false } = splitting
    const isInside = create === createJsonArraySplitter ? !closed : rest !== ''
    for (const pieces of [[text], [...text], ...cutsOf(text)])
      expect(split(create, pieces), pieces.join('^')).toEqual({ values, rest, isInside })
  })
})
