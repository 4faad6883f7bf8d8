import { expect, test } from 'vitest'
import { listJsonElements, readListPage, readPages, toOneLineJson } from '../../src/wire/page.ts'
import { catchFailure } from './decoding.ts'

const page = (text: string) => readListPage(Buffer.from(text), 'the list')
const after = (value: string) => `after_id=${value}`
const errorInSuccess = 'the service answered with an error in a successful response'

test.each<[text: string, texts: string[], hasNextField: boolean, next: string | undefined]>([
  ['[]', [], false, undefined],
  ['[1, {"a" : 2}]', ['1', '{"a" : 2}'], false, undefined],
  ['\n{"data":[12345678901234567890,\n "x"]}', ['12345678901234567890', '"x"'], false, undefined],
  ['{"data":[{"id":"a"}],"last_id":"b"}', ['{"id":"a"}'], false, undefined],
  ['{"data":[],"next_page":null}', [], true, undefined],
  ['{"data":[],"next_page":""}', [], true, undefined],
  ['{"data":[],"next_page":0}', [], true, 'page=0'],
  ['{"data":[],"next_page":"\\ud800"}', [], true, 'page=%EF%BF%BD'],
  ['{"data":[],"next_page":"p 2","has_more":false}', [], true, 'page=p%202'],
  ['{"data":[{"id":"a"}],"has_more":false}', ['{"id":"a"}'], true, undefined],
  ['{"data":[{"id":"a"}],"has_more":"yes"}', ['{"id":"a"}'], true, undefined],
  ['{"data":[{"id":"a"},{"id":"b"}],"has_more":true}', ['{"id":"a"}', '{"id":"b"}'], true, after('b')],
  ['{"data":[{"id":7}],"has_more":true}', ['{"id":7}'], true, after('7')],
  ['{"data":[{"id":"a"}],"has_more":true,"last_id":9}', ['{"id":"a"}'], true, after('9')],
  ['{"data":[{"id":"a"}],"has_more":true,"last_id":""}', ['{"id":"a"}'], true, after('a')],
  ['{"data":[{"id":"a"}],"has_more":true,"last_id":{}}', ['{"id":"a"}'], true, after('a')],
  ['{"data":[],"next_page":null,"has_more":true,"last_id":"z"}', [], true, after('z')],
])('readListPage(%s) returns the items %j, hasNextField %j and the next page %j', (...row) => {
  const [text, texts, hasNextField, next] = row
  const read = page(text)
  expect(read).toMatchObject({ texts, hasNextField, data: texts.map((each) => JSON.parse(each)) })
  expect(read.next()).toEqual(next)
})

test('a list page may start with a byte order mark, and invalid UTF-8 in it becomes U+FFFD', () => {
  const bytes = Buffer.from('\ufeff{"data":["\ufeffa?b"],"next_page":"?"}')
  for (const [at, byte] of bytes.entries()) if (byte === 0x3f) bytes[at] = 0xe2
  const read = readListPage(bytes, 'the list')
  expect(read.texts).toEqual(['"\ufeffa\ufffdb"'])
  expect(read.next()).toEqual('page=%EF%BF%BD')
})

test('a list page over 32 KiB is read as a whole', () => {
  const text = '"\\,]é'.repeat(100)
  const texts = Array.from({ length: 200 }, (_, i) => JSON.stringify({ id: `é\\"${i}`, text }))
  expect(page(`{"data":[${texts.join(', ')}],"next_page":"p"}`).texts).toEqual(texts)
})

test.each([
  ['{"data":[1],"next_page":{}}', 'the list: next_page must be a string or a number'],
  ['{"data":[1],"next_page":true}', 'the list: next_page must be a string or a number'],
  ...['{}', '{"id":""}', '{"id":null}', '{"id":["a"]}', 'null', '5'].map((last) => [
    `{"data":[{"id":"a"},${last}],"has_more":true}`,
    'the list has more items, but no cursor for the next page',
  ]),
  ['{"data":[],"has_more":true}', 'the list has more items, but no cursor for the next page'],
])('next() after the list page %s throws "%s"', (text, message) => {
  const read = page(text)
  expect(read.hasNextField).toBe(true)
  expect(() => read.next()).toThrow(message)
})

test.each<[text: string, message: string, serviceMessage?: string]>([
  ['', 'the list is not JSON'],
  ...[
    ...['{"data":[{"id":"a"},{"id":"b"', '{"data":[{"id":"a"}]', '{"data":["]}', '{"data":[1,]}'],
    ...['{"data":[,1]}', '{"data":[1 2]}', '{"data":[1},"a":2}', '{"data":[{"a":1]]}', '{"data":[1]]}'],
    ...['{"data":[\u00a01]}', '{"data":["\n"]}', '{"data":[x],"data":[1]}', '{[1]}', '[1][2]'],
  ].map((text): [string, string] => [text, 'the list is not JSON']),
  ['{"data":[1],"data":2}', 'the list: data must be a list'],
  ['{"data":null}', "the list has no field 'data'"],
  ['"words"', "the list has no field 'data'", 'words'],
  ['{"data":{}}', 'the list: data must be a list'],
  ['{"message":"no such list"}', errorInSuccess, 'no such list'],
  ['[{"type":"error","error":{"message":"later"}}]', errorInSuccess, 'later'],
  ['{"code":0,"message":"nothing here"}', "the list has no field 'data'", 'nothing here'],
])('readListPage(%j) fails with the message "%s"', (text, message, serviceMessage) => {
  const { kind, message: shown, details } = catchFailure(() => page(text)) ?? {}
  expect([kind, shown, details?.serviceMessage]).toEqual(['response', message, serviceMessage])
})

/** Reads pages of one item, or of none. `a:2` is the page with the item `a` that names the cursor `2`. */
async function countPages(pages: string): Promise<number> {
  const all = pages.split(' ')
  let count = 0
  const read = async () => {
    const [firstId, next] = (all[count++] ?? ':').split(':').map((part) => part || undefined)
    return { items: firstId === undefined ? [] : [firstId], firstId, next: () => next }
  }
  for await (const _ of readPages('the list', read));
  return count
}

test('a list ends with the page that names no next page', async () => {
  expect(await countPages('a:1 b:2 A:3 : d:4')).toBe(4)
})

const empty = (count: number, name = 'c') =>
  Array.from({ length: count }, (_, index) => `:${name}${index}`).join(' ')

test.each([
  ['an earlier cursor', 'a:1 b:2 c:1', 'its pages repeat'],
  ['an earlier first id', 'a:1 b:2 a:3', 'its pages repeat'],
  ['21 empty pages', empty(21), '21 pages in a row are empty'],
])('a list with %s is rejected', async (_, pages, why) => {
  const failure = { kind: 'response', message: `the list does not end: ${why}` }
  await expect(countPages(pages)).rejects.toMatchObject(failure)
})

test('a list may have 20 empty pages in a row several times, and then an empty last page', async () => {
  expect(await countPages(`${empty(20)} a:1 ${empty(20, 'd')} :`)).toBe(42)
})

test.each<[text: string, elements: string[]]>([
  ['{"events":[{"a":\r\n1.0},[2, "x\\n"],\n\n3]}', ['{"a":1.0}', '[2, "x\\n"]', '3']],
  ['{"events":[1],"events":[2]}', ['2']],
  ['{"other":{"a":1,"events":[2]},"events":[3,{"events":[4,5]}],"more":[6,7]}', ['3', '{"events":[4,5]}']],
  ['{"events":{"0":1}}', []],
  ['{"other":[1]}', []],
])('the elements of "events" in %j are %j', (text, elements) => {
  expect(listJsonElements(text, 'events')).toEqual(elements)
})

test('a list may be nested 1,000 levels deep, but not deeper', () => {
  const nest = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
  expect(listJsonElements(nest(1000), 'data')).toEqual([nest(999)])
  expect(() => listJsonElements(nest(1001), 'data')).toThrow('nested more than 1000 levels deep')
})

test('a list item is printed as one line: only its line breaks are removed', () => {
  expect(toOneLineJson('\n{\r\n "a":\r1,\n\n\t"b":"\\n"}\r\n')).toBe('{ "a":1,\t"b":"\\n"}')
})
