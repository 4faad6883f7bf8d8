import { expect, test } from 'vitest'
import { CliError } from '../../../src/errors.ts'
import {
  createJsonAssignment,
  createListAppendAssignment,
  editJson,
  parseSetFlag,
  readFieldPath,
} from '../../../src/wire/json/edit.ts'

test.each<[source: string, path: (string | number)[], end?: number]>([
  ['a', ['a']],
  ['a.b.c', ['a', 'b', 'c']],
  ['a[0][12].b', ['a', 0, 12, 'b']],
  ['[3].a', [3, 'a']],
  ['a["x.y"].b["\\u0062\\""]', ['a', 'x.y', 'b', 'b"']],
  ['["x"]["]"]', ['x', ']']],
  ['a b.é', ['a b', 'é']],
  ['', [], 0],
  ['.a', [], 0],
  ['a[0]b', ['a', 0], 4],
  ...'a..b a. a[] a[-1] a=b a["\\x"] a["x] a["x" a"b a[0=1'
    .split(' ')
    .map((source): [string, string[], number] => [source, ['a'], 1]),
])('parley reads the path at the start of --set %j as %j', (source, path, end = source.length) => {
  expect(readFieldPath(source)).toEqual({ path, end })
})

test.each([
  ['a=1', ['a'], '1'],
  ['a= [1, 2.50] ', ['a'], ' [1, 2.50] '],
  ['a=tru', ['a'], '"tru"'],
  ['a=', ['a'], '""'],
  ['a=b=c', ['a'], '"b=c"'],
  ['a.b[]=null', ['a', 'b', undefined], 'null'],
  ['a[0]="x"', ['a', 0], '"x"'],
])('the assignment %j is accepted by --set', (source, path, json) => {
  expect(parseSetFlag(source)).toEqual({ path, json, source: `--set ${source}` })
})

const form = 'must have the form PATH=VALUE, with a path such as a.b, a[0], a[] or a["x.y"]'
const invalid = ['', '=1', 'a', 'a[]', 'a[0', 'a..b=1', '[]=1', 'a[]x=1', '.a=1']
test.each(invalid)('the assignment %j is rejected by --set', (source) =>
  expect(() => parseSetFlag(source)).toThrow(new CliError('usage', `--set ${source}: ${form}`)),
)

test('an assignment of --set may have 1,000 path steps, but not more', () => {
  expect(parseSetFlag(`a${'.a'.repeat(999)}=1`).path).toHaveLength(1000)
  const failure = new CliError('usage', '--set: the path has more than 1000 steps')
  expect(() => parseSetFlag(`a${'.a'.repeat(1000)}=1`)).toThrow(failure)
})

test('a message about a flag contains the path of the body field that the flag sets', () => {
  expect(createJsonAssignment(['a', 'b'], '1')).toEqual({ path: ['a', 'b'], json: '1', source: 'a.b' })
  expect(createListAppendAssignment(['a'], '1')).toEqual({ path: ['a', undefined], json: '1', source: 'a' })
})

test.each<[text: string, sets: string[], edited: string]>([
  ['{}', [], '{}'],
  [' { "a" : 1.0 , "b":2 }\n', ['a=x'], ' { "a" : "x" , "b":2 }\n'],
  ['{"a":1,"a":2}', ['a=3'], '{"a":1,"a":3}'],
  ['{"__proto__": {"a":1}, "b":[]}', ['__proto__.a=2'], '{"__proto__": {"a":2}, "b":[]}'],
  ['{"}]\\"":"[{\\\\","x":[ ]}', ['x[]=1'], '{"}]\\"":"[{\\\\","x":[1 ]}'],
  ['{ "a" : 1 \t}', ['b=2', 'c=3'], '{ "a" : 1,"b":2,"c":3 \t}'],
  ['{ }', ['a=1'], '{"a":1 }'],
  ['{"a":{"b":[{}, [0]]}}', ['a.b[1][0]=1', 'a.b[0].c=2'], '{"a":{"b":[{"c":2}, [1]]}}'],
  ['[1]', ['[0]=2', '[1]=3', '[2]=4'], '[2,3,4]'],
  ['{"a":[]}', ['a[0]=1', 'a[]=2', 'a[]=3'], '{"a":[1,2,3]}'],
  ['{"a":[\n1\n]}', ['a[]=2'], '{"a":[\n1,2\n]}'],
  ['{}', ['a[]=1', 'a[]=2', 'b[]=3', 'a[]=4'], '{"a":[1,2,4],"b":[3]}'],
  ['{}', ['a[]=1', 'a[1]=2', 'a[]=3'], '{"a":[1,2,3]}'],
  ['{}', ['a[]=1', 'a=[2]', 'a[]=3'], '{"a":[2,3]}'],
  ['{"a":[[]]}', ['a[]=1', 'a[0][]=2', 'a[]=3'], '{"a":[[2],1,3]}'],
  ['{"a":{}}', ['a.b[]=1', 'a.c[]=2'], '{"a":{"b":[1],"c":[2]}}'],
  ['{}', ['a.b[0]["c d"][0][]=1'], '{"a":{"b":[{"c d":[[1]]}]}}'],
  ['{}', ['a[0]=1'], '{"a":[1]}'],
  ['{}', ['["\\""]=1'], '{"\\"":1}'],
  ['{}', ['["5"]=1', 'a["5"]=2'], '{"5":1,"a":{"5":2}}'],
])(
  'P31: in the body %j, the --set flags %j change only the assigned paths and keep the rest byte for byte',
  (text, sets, edited) => {
    expect(editJson(text, sets.map(parseSetFlag))).toBe(edited)
  },
)

test.each<[text: string, set: string, problem: string]>([
  ['[]', 'a=1', 'the body is not an object'],
  ['{}', '[0]=1', 'the body is not a list'],
  ['null', 'a=1', 'the body is not an object'],
  ['{"a":[{}]}', 'a.b=1', 'a is not an object'],
  ['{"a":[{}]}', 'a[0][0]=1', 'a[0] is not a list'],
  ['{"a":{"b":"[1]"}}', 'a.b[]=1', 'a.b is not a list'],
  ['{"a":[1]}', 'a[2]=1', 'a[2] would leave a gap in the list; use a[] to append'],
  ['{"a":[]}', 'a[1].b=1', 'a[1] would leave a gap in the list; use a[] to append'],
  ['{}', 'a[1]=1', 'a[1] would leave a gap in the list; use a[] to append'],
])('for the body %s, parley rejects --set %s: %s', (text, set, problem) => {
  expect(() => editJson(text, [parseSetFlag(set)])).toThrow(new CliError('usage', `--set ${set}: ${problem}`))
})
