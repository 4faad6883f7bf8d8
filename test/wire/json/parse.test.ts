import { expect, test } from 'vitest'
import {
  describeSchemaIssues,
  formatFieldPath,
  parseJson,
  tryParseJson,
} from '../../../src/wire/json/parse.ts'
import * as z from '../../../src/wire/zod.ts'

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)

test('JSON with 1,000 nested levels is parsed, and JSON with 1,001 levels is rejected', () => {
  expect(parseJson(nested(1000))).toHaveLength(1)
  expect(() => parseJson(nested(1001))).toThrow(new SyntaxError('nested more than 1000 levels deep'))
  expect(tryParseJson(nested(1001))).toBeUndefined()
  expect([tryParseJson('{"a":[1]}'), tryParseJson('{')]).toEqual([{ a: [1] }, undefined])
})

test.each([
  [['events', 2, 'content', 0, 'text'], 'events[2].content[0].text'],
  [[0, 'a'], '[0].a'],
  [['a.b'], 'a.b'],
  [[], ''],
])('the JSON path %j is shown as %j', (path, written) => expect(formatFieldPath(path)).toBe(written))

test('each problem that a schema finds is reported with its path', () => {
  const schema = z.looseObject({ a: z.array(z.string()) })
  const problems = (value: unknown) => describeSchemaIssues(schema.safeParse(value).error as z.core.$ZodError)
  expect(problems({ a: ['x', 1, null] })).toEqual(['a[1]: must be text', 'a[2]: must be text'])
  expect(problems([])).toEqual(['must be an object'])
})
