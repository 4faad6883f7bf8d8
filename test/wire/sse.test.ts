import { expect, test } from 'vitest'
import {
  createSseDecoder,
  encodeSseEvent,
  isKeepAliveEvent,
  isStreamEnd,
  readSseEvents,
} from '../../src/wire/sse.ts'

interface Reading {
  /** Each event as `NAME DATA`. */
  events?: string[]
  /** Incomplete event at the end. */
  partial?: string
}

const shown = ({ event, data }: { event: string; data: string }) => `${event} ${data}`

function read(pieces: Uint8Array[]) {
  const decoder = createSseDecoder()
  const events = pieces.flatMap((piece) => decoder.push(piece))
  const { events: last, partial } = decoder.end()
  return { events: [...events, ...last].map(shown), partial: partial && shown(partial) }
}

/** Reads a text whole, byte by byte, and split in two at each offset with an empty chunk between. */
function expectReading(bytes: Buffer, { events = [], partial }: Reading): void {
  const nothing = new Uint8Array()
  const cuts = [...bytes.keys()].map((place) => [bytes.subarray(0, place), nothing, bytes.subarray(place)])
  for (const pieces of [[bytes], [...bytes].map((byte) => Uint8Array.of(byte)), ...cuts])
    expect(read(pieces)).toEqual({ events, partial })
}

/** In `text`, a bar marks each offset at which no part of an event is buffered. The start has no bar. */
const framed: [text: string, reading: Reading][] = [
  ['', {}],
  ['data: a\n\n|data: b\n\n|', { events: [' a', ' b'] }],
  ['data:a\n\n|data:  a\n\n|data: a:b\n\n|', { events: [' a', '  a', ' a:b'] }],
  ['data\n\n|data:\n\n|data: \n\n|', { events: [' ', ' ', ' '] }],
  ['data: a\ndata:\ndata: b\n\n|', { events: [' a\n\nb'] }],
  ['event: x\ndata: a\n\n|data: b\n\n|', { events: ['x a', ' b'] }],
  ['event: x\nevent: y\ndata: a\n\n|', { events: ['y a'] }],
  ['event: x\n\n|data: a\n\n|', { events: [' a'] }],
  [': data: no\n|retry: 1\n|strange\n|Data: no\n| data: no\n|\n|', {}],
  // The standard says that a blank belongs to the field name, and only a byte order mark at the start is dropped.
  [' data: no\n|data: a\n\n|\ufeffdata: no\n|', { events: [' a'] }],
  ['\ufeff| data: no\n|data: a\n\n|', { events: [' a'] }],
  ['data: a\r\r|data: b\r\n\r|\n|data: c\n\r|data: d\n\n|', { events: [' a', ' b', ' c', ' d'] }],
  ['data: a\r\n\r|\n|\r|\n|', { events: [' a'] }],
  ['data: a\r\ndata: b\rdata: c\n\n|', { events: [' a\nb\nc'] }],
  ['id: 7\n|\n|data: a\n\n|', { events: [' a'] }],
  ['data: a\n\n|data: b\n', { events: [' a'], partial: ' b' }],
  ['data: a\ndata: b', { partial: ' a\nb' }],
  ['event: x\n', { partial: 'x ' }],
  ['da', { partial: ' ' }],
  ['id: 7', { partial: ' ' }],
  ['data: a\n\n|: a comment', { events: [' a'] }],
]

/** An object on its own lines is an event even without `data:`. */
const bare: typeof framed = [
  ['{"a":1}\n|{"b":2} \t{"c":3}\r|\n|', { events: [' {"a":1}', ' {"b":2}', ' {"c":3}'] }],
  [' \t{"a":\n[{\r\n\n}]}\n|', { events: [' {"a":\n[{\n}]}'] }],
  ['{"a":\n: a comment\n1}\n|', { events: [' {"a":\n1}'] }],
  ['{"a":1}', { events: [' {"a":1}'] }],
  ['{"a":1}\n|{"b":', { events: [' {"a":1}'], partial: ' {"b":' }],
  ['{"a":\n 1', { partial: ' {"a":\n 1' }],
  ['{"a":\n: a comment', { partial: ' {"a":' }],
  ['data: x\n{"a":1}\n|', { events: [' x', ' {"a":1}'] }],
  ['event: x\n{"a":1}\n|', { events: [' {"a":1}'] }],
  ['id: 7\n|{"a":1}\n|', { events: [' {"a":1}'] }],
  ['strange {"a":1}\n|"{}"\n|[{}]\n|: {"a":1}\n|data: {}\n\n|', { events: [' {}'] }],
]

test.each([...framed, ...bare])('the SSE decoder reads the events and objects in %j', (marked, reading) => {
  const text = marked.replaceAll('|', '')
  expectReading(Buffer.from(text), reading)
  const decoder = createSseDecoder()
  const isBetween = [...text].map((char) => {
    decoder.push(Buffer.from(char))
    return decoder.isBetweenEvents()
  })
  const places = marked.split('|').slice(0, -1)
  const ends = places.map((_, index) => places.slice(0, index + 1).join('').length - 1)
  expect([...isBetween.keys()].filter((place) => isBetween[place])).toEqual(ends)
  expect(createSseDecoder().isBetweenEvents()).toBe(true)
})

test('the SSE decoder removes only a byte order mark at the start, and replaces invalid UTF-8 by U+FFFD', () => {
  expectReading(Buffer.from('\ufeffdata: \ufeffé🦜\n\n'), { events: [' \ufeffé🦜'] })
  const invalid = Buffer.from('data: \xff\n\ndata: \xc3', 'latin1')
  expectReading(invalid, { events: [' \ufffd'], partial: ' \ufffd' })
})

test.each<[text: string, events: string[]]>([
  ['data: a\n\nevent: x\ndata: b', [' a', 'x b']],
  ['data: a\n\n{"a":1}\n{"b":', [' a', ' {"a":1}']],
])('all events of a text are read, even if the last one has no line break: %j', (text, events) => {
  expect(readSseEvents(text).map(shown)).toEqual(events)
})

test("each line of an event's data is written as a separate data line", () => {
  expect(encodeSseEvent({ event: '', data: 'a\nb' })).toBe('data: a\ndata: b\n\n')
  expect(encodeSseEvent({ event: 'x', data: '' })).toBe('event: x\ndata: \n\n')
})

test.each(['[DONE]', '"[DONE]"', '[done]', ' [DONE]\n', '[DONE]'.padEnd(99)])(
  'E37: the event data %j ends a stream',
  (data) => {
    expect(isStreamEnd(data)).toBe(true)
    expect(isKeepAliveEvent(data, '')).toBe(false)
  },
)

test.each([
  ...['', ' \n', ...'null true FALSE 0 -1.5 12 "ping" ping Pong heartbeat "heartbeat"'.split(' ')],
  ...['keepalive', 'keep-alive', 'keep_alive', 'keep alive', ' ping ', '1'.repeat(99)],
])('the event data %j is a keep-alive', (data) => {
  expect(isKeepAliveEvent(data, '')).toBe(true)
  expect(isStreamEnd(data)).toBe(false)
})

test.each([
  ...['{}', '{"a":1}', '[]', '[DONE', '[DONE]x', 'x[DONE]', '"[DONE]x"', '{[DONE]'],
  ...['a1', '1a', '"1"', '1-', 'nullx', 'xnull', 'pingx', 'xping', '"pingx"', 'keep  alive', 'words'],
  ...['[DONE]'.padEnd(100), '1'.repeat(100)],
])('the event data %j is neither the end of a stream nor a keep-alive', (data) => {
  expect(isStreamEnd(data)).toBe(false)
  expect(isKeepAliveEvent(data, '')).toBe(false)
})

test.each('ping Heartbeat keepalive keep-alive keep_alive'.split(' '))(
  'E36: an event named "%s" is a keep-alive, unless its data is an object',
  (event) => expect(['words', '{}'].map((data) => isKeepAliveEvent(data, event))).toEqual([true, false]),
)

test.each(['keep alive', 'pings', 'xping', ''])('an event named "%s" is not a keep-alive', (event) =>
  expect(['words', '{}'].map((data) => isKeepAliveEvent(data, event))).toEqual([false, false]),
)
