import { describe, expect, test } from 'vitest'
import { createAnswerDecoder } from '../../../src/wire/gateway/answer-decoder.ts'
import type { AnswerProgress } from '../../../src/wire/gateway/answer-reader.ts'
import { catchFailure, decodeAnswer } from '../decoding.ts'

interface Reading {
  text?: string
  /** Output of `--raw`; if omitted, the body unchanged. */
  raw?: string
  /** Progress before the body ended. */
  progress?: AnswerProgress
  failure?: string
}

const chunk = (text: string, more: object = {}) =>
  JSON.stringify({ candidates: [{ content: { parts: [{ text }] }, ...more }] })
const lastChunk = chunk('b', { finishReason: 'STOP' })
const message = '{"content":"a"}'
const start = (id?: string) => JSON.stringify({ type: 'message_start', message: { id } })
const delta = '{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}'
const stop = '{"type":"message_stop"}'
const secondAnswer = 'the service sent a second answer after the first'
const tooEarly = 'the stream ended early: the answer is not complete'
const json = 'application/json'
const sse = 'text/event-stream'
const ndjson = 'application/x-ndjson'
const data = (...values: string[]) => values.map((value) => `data: ${value}\n\n`).join('')
const lines = (...values: string[]) => values.map((value) => `${value}\n`).join('')

const wrong = '{"error":{"message":"no"}}'
const notJson = 'an event of the stream is not JSON'
const ownError = 'the stream ended with an error'
const errorInSuccess = 'the service answered with an error in a successful response'
const both = lines(chunk('a'), lastChunk)
const one = { text: 'a', raw: lines(chunk('a')) }
const latin = '{"content":"\xc3\xa9"}'
const accented = { text: 'é', raw: lines(latin) }
const whole: Reading = { text: 'a', raw: lines(message), progress: 'ended' }

type Row = [type: string, body: string, reading: Reading]

const events: Row[] = [
  [sse, data(chunk('a'), lastChunk), { text: 'ab', raw: both, progress: 'settled' }],
  [sse, `${data(chunk('a'), lastChunk)}data: {`, { text: 'ab', raw: both, failure: tooEarly }],
  [sse, data(chunk('a')), { ...one, failure: tooEarly }],
  [sse, data(chunk('a'), '[DONE]', wrong), { ...one, progress: 'ended' }],
  [sse, `${data(chunk('a'))}data: [DONE]`, { ...one, progress: 'open' }],
  [sse, data('[DONE]'), { raw: '', progress: 'ended' }],
  [sse, data('{"type":"surprise"}', '[DONE]'), { raw: '{"type":"surprise"}\n', progress: 'ended' }],
  [sse, data('ping', '', '  ', '[DONE]'), { raw: 'ping\n', progress: 'ended' }],
  [sse, `event: ping\n${data('words', '[DONE]')}`, { raw: 'words\n', progress: 'ended' }],
  [sse, data('words'), { raw: 'words\n', failure: notJson }],
  ...[
    [chunk('a'), 'words', lastChunk],
    [chunk('a'), 'words', wrong, chunk('b')],
  ].map((values): Row => [sse, data(...values), { text: 'ab', raw: lines(...values), failure: notJson }]),
  [sse, `${data(chunk('a'))}data: ${lastChunk}\n`, { text: 'ab', raw: both, failure: tooEarly }],
  [sse, 'data: {"content":\ndata: "a"}\n\ndata: [DONE]\n\n', whole],
  [sse, `event: Error\n${data('[DONE]')}`, { raw: '[DONE]\n', failure: ownError }],
  [sse, `event: error\ndata: ${wrong}`, { raw: lines(wrong), failure: ownError }],
  [sse, `event: mirror\n${data(chunk('a'), '[DONE]')}`, { ...one, progress: 'ended' }],
  [sse, `event: message_stop\n${data('{}')}`, { raw: '{}\n', progress: 'ended' }],
  ['Text/Event-Stream; charset=latin1', data(latin, '[DONE]'), { ...accented, progress: 'ended' }],
  [sse, both, { text: 'ab', raw: both, progress: 'settled' }],
  [sse, `\xef\xbb\xbf \n${data(message, '[DONE]')}`, whole],
  ...['data', 'event', 'id', 'retry', ':x'].map(
    (start): Row => [json, `${start}\n\n${data(message, '[DONE]')}`, whole],
  ),
  [json, `event:x\n${data(message, '[DONE]')}`, whole],
  [sse, `words\n${data(message, '[DONE]')}`, whole],
  [`${sse}; x`, `words\n${data(message)}event: other\n${data('[DONE]')}`, whole],
  ...(
    [
      [[start('m'), delta, start('m'), start(), stop], { text: 'a', progress: 'ended' }],
      [[start(), delta, start('n'), stop], { text: 'a', progress: 'ended' }],
      [[start('m'), start('n'), delta, stop], { text: 'a', progress: 'ended' }],
      [[start('m'), delta, start('n'), delta, stop], { text: 'aa', failure: secondAnswer }],
    ] as [string[], Reading][]
  ).map(([values, reading]): Row => [sse, data(...values), { ...reading, raw: lines(...values) }]),
  [sse, '', { raw: '', failure: tooEarly }],
  [sse, ':', { raw: '', failure: tooEarly }],
]

const arrays: Row[] = [
  [json, `[${chunk('a')},\n${lastChunk}]`, { text: 'ab', progress: 'ended' }],
  [sse, `[${chunk('a')},\n${lastChunk}]`, { text: 'ab', progress: 'ended' }],
  [json, ` [${chunk('a')}] words]`, { text: 'a', progress: 'ended' }],
  [json, `[${chunk('a')},${lastChunk}`, { text: 'ab', failure: tooEarly }],
  [json, '[]', { progress: 'ended' }],
  [json, '[null,{"error":{"code":429}}]', { failure: errorInSuccess }],
  [json, `[${chunk('a')},{"error":{"code":429}}]`, { text: 'a', failure: ownError }],
  [json, `[null,"ping",${chunk('a')}]`, { text: 'a', progress: 'ended' }],
  [json, '["ping",{"candidates":[{"finishReason":"STOP"}]}]', { progress: 'ended' }],
  [json, `[${chunk('a')},"[DONE]",5]`, { text: 'a', progress: 'ended' }],
  [json, `[${chunk('a')},{"type":"message_stop"},{`, { text: 'a', progress: 'ended' }],
  [json, `[${chunk('a')},words`, { text: 'a', failure: tooEarly }],
  [json, `[${chunk('a')},words,${lastChunk}]`, { text: 'ab', failure: 'a chunk of the stream is not JSON' }],
  [`${json}; charset=latin1`, `[${latin}]`, { text: 'é', progress: 'ended' }],
]

const sequences: Row[] = [
  [json, message, { text: 'a', progress: 'open' }],
  ['', ` \xef\xbb\xbf\n${message}\n `, { text: 'a', progress: 'open' }],
  ['text/html', message, { text: 'a', progress: 'open' }],
  [json, lastChunk, { text: 'b', progress: 'open' }],
  [json, chunk('a') + lastChunk, { text: 'ab', progress: 'open' }],
  [json, `${chunk('a')}\n${lastChunk} \r`, { text: 'ab', progress: 'open' }],
  [json, `${chunk('a')}${lastChunk}{`, { text: 'ab', failure: tooEarly }],
  [json, chunk('a') + chunk('b'), { text: 'ab', failure: tooEarly }],
  [json, `${message}\n[DONE]`, { text: 'a', progress: 'open' }],
  [json, `${message}\n[DONE]\n{"error":"no"}`, { text: 'a', progress: 'open' }],
  [json, `${message}\n"[DONE]"{`, { text: 'a', progress: 'open' }],
  [json, `${message} words\n`, { failure: 'the answer is not JSON' }],
  [json, `${message} words`, { failure: 'the answer is not JSON' }],
  ['text/plain', `${message}5\n{}`, { failure: 'the answer (text/plain) is not JSON' }],
  [json, '{"content":', { failure: 'the answer is not JSON' }],
  [json, '{"other":1}', { progress: 'open' }],
  [json, '{"text":"a"}{"type":"message_stop"}', { progress: 'open' }],
  ...[ndjson, 'application/JSONL', 'application/json-lines', 'application/jsonlines'].flatMap(
    (type): Row[] => [
      [type, `${lastChunk}\n`, { text: 'b', progress: 'settled' }],
      [type, message, { text: 'a', failure: tooEarly }],
      [type, `${lastChunk}{"`, { text: 'b', failure: tooEarly }],
      [type, `${message}\n"[DONE]"`, { text: 'a', progress: 'open' }],
    ],
  ),
  [`${json}; charset=latin1`, latin, { text: 'é', progress: 'open' }],
]

const others: Row[] = [
  [json, 'words', { failure: 'the answer is not JSON' }],
  [json, 'datas: {}', { failure: 'the answer is not JSON' }],
  [json, `retryx\n\n${data(message)}`, { failure: 'the answer is not JSON' }],
  [json, 'Data: {}', { failure: 'the answer is not JSON' }],
  [json, '<p>no</p>', { failure: 'the answer is not JSON' }],
  [sse, '<p>no</p>', { failure: 'the answer (text/event-stream) is not JSON' }],
  ['text/html', data(message), { failure: 'the answer (text/html) is not JSON' }],
  ['text/html; x', data(message), { failure: 'the answer (text/html; x) is not JSON' }],
  [json, '', { failure: 'the answer is empty' }],
  [json, ' \n', { failure: 'the answer is empty' }],
  [json, '"words"', { progress: 'open' }],
]

describe.each([
  ['events', events],
  ['an array', arrays],
  ['values in a row', sequences],
  ['something else', others],
])('the decoder reads a body of %s', (_, rows) => {
  test.each(rows)(
    'an answer of type "%s" is decoded in the same way however its body is split: %j',
    (type, body, { text = '', raw, progress, failure }) => {
      const bytes = Buffer.from(body, 'latin1')
      const cuts = [...bytes.keys()].map((place) => [bytes.subarray(0, place), bytes.subarray(place)])
      for (const pieces of [[bytes], [...bytes].map((byte) => Uint8Array.of(byte)), ...cuts]) {
        const { summary: _, ...reading } = decodeAnswer(type, pieces)
        expect(reading).toEqual({ text, raw: failure ? raw : (raw ?? body), progress, failure })
      }
    },
  )
})

test.each<[type: string, body: string, progress: AnswerProgress]>([
  [sse, '', 'open'],
  [sse, `${data(lastChunk)}id`, 'finished'],
  [sse, `${data(lastChunk)}data: {`, 'finished'],
  [sse, data(chunk('a'), 'words'), 'settled'],
  [sse, data(chunk('a'), 'words', '[DONE]'), 'ended'],
  [json, `[${lastChunk}`, 'finished'],
  [json, `[${lastChunk},`, 'finished'],
  [ndjson, `${lastChunk}{`, 'finished'],
  [json, 'words', 'open'],
])('a decoder for "%s" that has received %j has the progress "%s"', (type, body, progress) => {
  const decoder = createAnswerDecoder(type, { text: () => undefined })
  decoder.push(Buffer.from(body))
  expect(decoder.progress()).toBe(progress)
})

test.each<[type: string, body: string, isUnread: boolean]>([
  [json, message, false],
  [json, 'words', true],
  [json, ' ', false],
  [json, '<p>no</p>', false],
  [json, '{"content":[]}', false],
  [json, wrong, false],
  [json, '{"error":{"message":"no"},"content":[]}', true],
  [json, '{"candidates":[{"content":{"parts":[{"inlineData":{"data":"x"}}]}}]}', true],
  [sse, data(start(), stop), false],
  [sse, data(start()), false],
  [sse, `${data(start())}data: {`, true],
])('the decoder for "%s" that has read the body %j keeps it: %j', (type, body, isUnread) => {
  const decoder = createAnswerDecoder(type, { text: () => undefined })
  for (const piece of [...' \t\r\n', body]) decoder.push(Buffer.from(piece))
  catchFailure(() => decoder.end())
  expect(Buffer.from(decoder.unread()).toString()).toBe(isUnread ? body : '')
})

test.each([true, false])('with isRaw %j, the decoder reads an answer after 2 MiB of blanks', (isRaw) => {
  const blanks = Buffer.alloc(64 * 1024, ' \t\r\n')
  for (const [type, body, text] of [
    [json, message, 'a'],
    ['', chunk('a') + lastChunk, 'ab'],
    ['text/plain', `[${chunk('a')},${lastChunk}]`, 'ab'],
    [sse, data(lastChunk), 'b'],
  ] as const) {
    const reading = decodeAnswer(type, [...Array<Buffer>(32).fill(blanks), Buffer.from(body)], isRaw)
    expect(reading).toMatchObject({ text, failure: undefined })
    if (isRaw && type !== sse) expect(reading.raw === blanks.toString().repeat(32) + body).toBe(true)
  }
})

test.each<[isStreamed: boolean | undefined, type: string, verb: 'is' | 'is not']>([
  [undefined, '', 'is'],
  [false, 'text/plain', 'is'],
  [true, 'Application/JSON; charset=utf-8', 'is'],
  [true, json, 'is'],
  [true, '', 'is not'],
  [true, 'text/plain', 'is not'],
  [true, 'x-application/json', 'is not'],
])('a native value without a finish reason (isStreamed %j, content type %j) %s complete', (...row) => {
  const [isStreamed, type, verb] = row
  const decoder = createAnswerDecoder(type, { text: () => undefined }, isStreamed)
  decoder.push(Buffer.from(chunk('a')))
  const message = catchFailure(() => decoder.end())?.message
  expect({ message, progress: decoder.progress() }).toEqual(
    verb === 'is' ? { message: undefined, progress: 'ended' } : { message: tooEarly, progress: 'open' },
  )
})

test.each([
  ['{"content":', '{"content":'],
  [`${message} words\n`, `${message}\nwords`],
  [`${message} words`, `${message}words`],
])('the received part of the incomplete answer %j is %j', (given, received) => {
  const decoder = createAnswerDecoder(json, { text: () => undefined })
  const read = () => {
    decoder.push(Buffer.from(given))
    decoder.end()
  }
  expect(catchFailure(read)).toMatchObject({ message: 'the answer is not JSON', details: { body: received } })
})

test('the answer decoder ignores all bytes after the end of a JSON array', () => {
  const pieces = [`[${chunk('a')}]\n`, '\xe9\n', '\xe9'].map((piece) => Buffer.from(piece, 'latin1'))
  expect(decodeAnswer(json, pieces, false)).toMatchObject({ text: 'a', progress: 'ended' })
})

test('the failure of a stream counts as cut off only if the stream has no end, not if its data is invalid', () => {
  const isCutOff = (body: string, type = sse) => {
    const decoder = createAnswerDecoder(type, { text: () => undefined })
    const failure = catchFailure(() => {
      decoder.push(Buffer.from(body))
      decoder.end()
    })
    return failure ? failure.details.isCutOff : 'whole'
  }
  const cut = [isCutOff(data(chunk('a'))), isCutOff('data: {'), isCutOff(`[${chunk('a')}`, json)]
  expect(cut).toEqual([true, true, true])
  expect([isCutOff(data('words')), isCutOff('event: error\ndata: no')]).toEqual([undefined, false])
})

test('if the service sends a text instead of an answer, the failure contains the whole text', () => {
  const decoder = createAnswerDecoder(json, { text: () => undefined })
  decoder.push(Buffer.from('words \xc3', 'latin1'))
  const details = expect.objectContaining({ serviceMessage: 'words \ufffd' })
  expect(() => decoder.end()).toThrow(expect.objectContaining({ details }))
})

test.each([
  ['valid UTF-8', '61c3a9e78b90f09fa68a', 'aé狐🦊'],
  ['an invalid byte', 'c3a9ffc3a9', 'é\ufffdé'],
  ['an incomplete character', 'f09fa661', '\ufffda'],
])('however an answer is split, U+FFFD replaces bytes that are not UTF-8: %s', (_, hex, text) => {
  for (const [start, end] of [
    ['{"content":"', '"}'],
    ['data: {"content":"', '"}\n\ndata: [DONE]\n\n'],
  ] as const) {
    const bytes = Buffer.concat([Buffer.from(start), Buffer.from(hex, 'hex'), Buffer.from(end)])
    for (const size of [1, 2, 3, 100]) {
      const pieces: string[] = []
      const decoder = createAnswerDecoder(`${json}; charset=gbk`, { text: (more) => void pieces.push(more) })
      for (let at = 0; at < bytes.length; at += size) decoder.push(bytes.subarray(at, at + size))
      decoder.end()
      const isReplaced = decoder.otherContent.has('replaced bytes')
      expect([size, pieces.join(''), isReplaced]).toEqual([size, text, text.includes('\ufffd')])
    }
  }
})
