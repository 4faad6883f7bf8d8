import { describe, expect, test } from 'vitest'
import { parseHeader } from '../../src/http/request.ts'
import { escapeControls, escapeControlsInJson, toOneLine } from '../../src/io/escape.ts'
import { Secrets } from '../../src/secrets.ts'
import { editJson } from '../../src/wire/json/edit.ts'
import { createJsonArraySplitter } from '../../src/wire/json/splitter.ts'
import { findJsonSyntaxError } from '../../src/wire/json/syntax.ts'
import { listJsonElements, readListPage } from '../../src/wire/page.ts'
import { createUnexpectedBodyFailure, readErrorBody } from '../../src/wire/problem/problem.ts'
import { createSseDecoder } from '../../src/wire/sse.ts'
import { expectLinearWork } from '../harness/steps.ts'
import { cut, decodeAnswer } from './decoding.ts'

const patterns = [
  ...'<title <title> <message <a: <![CDATA[ < & data: { [ " \\ [{ {"error": // \\\\ //a a: @ //@ http://'.split(
    ' ',
  ),
  ...'? ?a ?key ?token= &secret = . - _ aA 0 \u0000 \ud800 \u202e'.split(' '),
  ...['<title ', 'data: {', '\n\n', '\r\n', ' ', '\t', '\u00a0'],
]

/** Returns a text of about this length. */
const fill = (pattern: string, size: number) => pattern.repeat(Math.ceil(size / pattern.length))

/** Splits bytes into chunks of `2 ** bits` bytes. */
const cutEach = (bytes: Buffer, bits: number) =>
  cut(
    bytes,
    [...Array(bytes.length >> bits).keys()].map((at) => at << bits),
  )

/** Ignores failures other than a stack overflow, because this test is only about time. */
function attempt(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    expect(error).not.toBeInstanceOf(RangeError)
  }
}

const secrets = new Secrets()
for (const secret of ['canary-token-0123456789', 'aaaaaaaa', 'canary']) secrets.add(secret)

test.each(patterns)('R89: an error response full of %j is read in linear time', async (pattern) => {
  for (const before of ['', '<']) {
    await expectLinearWork((size) => {
      const text = before + fill(pattern, size)
      readErrorBody(text)
      readErrorBody({ error: { message: text } })
      createUnexpectedBodyFailure(text, 'odd')
      secrets.redact(text)
    })
  }
})

const set = (path: string[]) => [{ path: [...path, undefined], json: '1', source: '' }]
const parsers: Record<string, (text: string) => unknown> = {
  'JSON syntax check': (text) => [text, `{"a":[${text}`].map((each) => findJsonSyntaxError(each, 1000)),
  'JSON edit': (text) => [editJson(`{"a":[${text}]}`, set(['b'])), editJson(text, set(['a']))],
  'extraction of array elements': (text) => listJsonElements(`{"data":[${text}]}`, 'data'),
  'reader of list pages': (text) => readListPage(Buffer.from(`{"a":${text}`), 'the list'),
  'array splitter': (text) => {
    const splitter = createJsonArraySplitter()
    for (let at = 0; at < text.length; at += 16) splitter.push(text.slice(at, at + 16))
  },
  'decoder of server-sent events': (text) => {
    const decoder = createSseDecoder()
    for (const piece of cutEach(Buffer.from(text), 4)) decoder.push(piece)
  },
  'parser of -H': parseHeader,
  'escaping of control characters': (t) => [escapeControls(t), escapeControlsInJson(t), toOneLine(t)],
}

describe.each(Object.entries(parsers))('%s', (name, parse) => {
  test.each([
    ...'{ [ " \\ [{ {"a":1}, [0], [] {} , : 0 \\u0000 // = data: aA \u001b[ \u202e \ud800'.split(' '),
    ...[' ', '\n\n', '\r\n', 'event:x\n'],
  ])(`the ${name} takes linear time for text full of %j`, (pattern) =>
    expectLinearWork((size) => attempt(() => parse(fill(pattern, size)))),
  )
})

const words = [
  ...'{ [ " \\ : , } ] < \0 \u00ff data: [] {"a": {"constructor":{"__proto__":'.split(' '),
  ...['\n', '\r', ' ', 'event:x\n', 'data:x\n'],
]
const types = ['application/json', 'text/event-stream', 'application/x-ndjson; charset=gbk']

test.each(types.flatMap((type) => words.map((word) => [type, word])))(
  'an answer of type %s full of %j is read in linear time',
  async (type, word) => {
    for (const start of ['', '{"content":"']) {
      await expectLinearWork((size) => {
        const bytes = Buffer.from(start + fill(word, size))
        const { failure, text } = decodeAnswer(type, cutEach(bytes, 9))
        expect(failure === undefined ? text : '', start + word).toBe('')
      })
    }
  },
)

test('an answer in many small chunks, or chunks of one byte, is read in linear time', () =>
  expectLinearWork((size) => {
    const chunk = '{"candidates":[{"content":{"parts":[{"text":"é🦜"}]}}]}'
    const chunks = Array(Math.ceil(size / chunk.length)).fill(chunk)
    const bytes = Buffer.from(`${' '.repeat(size)}[${chunks}]`)
    const pieces = [...bytes].map((byte) => Uint8Array.of(byte))
    expect(decodeAnswer('application/json', pieces).text).toHaveLength(chunks.length * 3)
  }))
