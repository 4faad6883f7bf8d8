import { expect, test } from 'vitest'
import type { AnswerSummary } from '../../../src/wire/gateway/answer-forms.ts'
import type { AnswerProgress } from '../../../src/wire/gateway/answer-reader.ts'
import { AnswerReader } from '../../../src/wire/gateway/answer-reader.ts'

type Step = [value: unknown, text: string, progress: AnswerProgress, event?: string]

const candidate = (text: string, more: object = {}) => ({ content: { parts: [{ text }] }, ...more })
const native = (...candidates: object[]) => ({ candidates })
const withId = (responseId: string, ...candidates: object[]) => ({ responseId, candidates })
const stop = { finishReason: 'STOP' }
const usage = { input_tokens: 1, output_tokens: 2, cache_read_input_tokens: 3 }
const counted = { inputTokens: 1, outputTokens: 2, cacheReadInputTokens: 3 }
const ended: Step = [native(stop), '', 'finished']
const delta = (text: string) => ({ type: 'content_block_delta', delta: { type: 'text_delta', text } })

test.each<[title: string, steps: Step[], summary?: AnswerSummary]>([
  [
    'native chunks with one finish reason need no end marker',
    [
      [native(candidate('a')), 'a', 'open'],
      [native(candidate('b', stop)), 'b', 'settled'],
      [{ usageMetadata: {} }, '', 'settled'],
    ],
    { stopReason: 'STOP' },
  ],
  [
    'after a second finish reason, a native answer may still have more chunks',
    [
      [native(candidate('a', stop)), 'a', 'settled'],
      [native(candidate('b')), 'b', 'open'],
      [native(candidate('c', { finishReason: 'OTHER' })), 'c', 'finished'],
    ],
    { stopReason: 'OTHER' },
  ],
  [
    'a chunk with usage may follow the chunk with the finish reason',
    [ended, [{ usageMetadata: {} }, '', 'finished']],
    { stopReason: 'STOP' },
  ],
  [
    'more chunks may follow a function call',
    [
      [native({ content: { parts: [{ functionCall: {} }] } }), '', 'open'],
      [native(candidate('a', stop)), 'a', 'finished'],
    ],
    { stopReason: 'STOP' },
  ],
  [
    'an answer that reports a blocked prompt is finished',
    [[{ promptFeedback: { blockReason: 'x' } }, '', 'finished']],
    { stopReason: 'x', blockReason: 'x' },
  ],
  [
    'an answer is finished when all its candidates are finished',
    [
      [native(candidate('a'), candidate('b', { index: 1, ...stop })), 'a', 'open'],
      [native(candidate('c', stop)), 'c', 'finished'],
      [native(candidate('d', { index: 1 })), '', 'open'],
      [native({ index: 1, ...stop }), '', 'finished'],
    ],
    { stopReason: 'STOP' },
  ],
  [
    'the finish reason of another candidate does not finish the printed candidate',
    [
      [native(candidate('half of')), 'half of', 'open'],
      [native({ index: 1, ...stop }), '', 'open'],
    ],
  ],
  [
    'an answer without the candidate to print is finished if another candidate is finished',
    [[native(candidate('b', { index: 1, ...stop })), '', 'finished']],
  ],
  [
    'the last chunk with token counts determines the counts',
    [
      [{ modelVersion: 'm', usageMetadata: { thoughtsTokenCount: 5 } }, '', 'open'],
      [{ usageMetadata: { promptTokenCount: 6 } }, '', 'open'],
      [{ candidates: [], responseId: 'j' }, '', 'open'],
    ],
    { id: 'j', model: 'm', inputTokens: 6 },
  ],
  [
    'message events end with message_stop',
    [
      [{ type: 'message_start', message: { model: 'm', usage } }, '', 'open'],
      [delta('a'), 'a', 'open'],
      [{ type: 'content_block_stop' }, '', 'open'],
      [{ type: 'message_delta', delta: { stop_reason: 's' }, usage: { output_tokens: 9 } }, '', 'open'],
      [{ type: 'message_stop', message: 5, delta: 'a' }, '', 'ended'],
    ],
    { model: 'm', stopReason: 's', ...counted, outputTokens: 9 },
  ],
  [
    'the SSE event name becomes the type of an event without a type',
    [
      [{ delta: { text: 'a' } }, 'a', 'open', 'content_block_delta'],
      [{ type: 5, delta: { text: 'b' } }, 'b', 'open', 'content_block_delta'],
      [{ type: 'ping', delta: { text: 'b' } }, '', 'open', 'content_block_delta'],
      [{ type: 'other' }, '', 'open', 'message_stop'],
      [['a'], '', 'open', 'message_stop'],
      [{ ...delta('c') }, 'c', 'open', 'surprise'],
      [{}, '', 'ended', 'message_stop'],
    ],
  ],
  [
    'an answer in several whole messages is finished if a message has a stop reason',
    [
      [{ content: 'a' }, 'a', 'open'],
      [{ content: 'b' }, 'b', 'open'],
      [{ content: [], stop_reason: 't' }, '', 'finished'],
    ],
    { stopReason: 't' },
  ],
  [
    'an answer may be inside an envelope object',
    [
      [{ response: native(candidate('a')) }, 'a', 'open'],
      [{ data: { content: 'b' }, message: 'ok' }, 'b', 'open'],
      [{ data: { content: 'c' }, code: 40101, msg: 'odd' }, 'c', 'open'],
      [{ error: {}, response: { content: 'd' } }, 'd', 'open'],
      [{ error: { code: 0, message: '' }, data: { content: 'e' } }, 'e', 'open'],
      [{ response: 5, data: { type: 'message_stop' } }, '', 'ended'],
    ],
  ],
  [
    'an answer that is one JSON value of an unknown form needs no end marker',
    [
      [{ type: 'ping' }, '', 'open'],
      [{ b64_json: 'x' }, '', 'finished'],
      [{ type: 'ping', delta: 'a' }, '', 'finished'],
      [{ type: 'content_block_stop' }, '', 'open'],
      [{ b64_json: 'x' }, '', 'open'],
    ],
  ],
  [
    'an answer inside an object that is not an envelope is not read',
    [
      [{ response: 'a', code: 0 }, '', 'finished'],
      [{ type: 'x', response: native(candidate('a')) }, '', 'finished'],
      [Object.create({ response: native(candidate('a')) }), '', 'finished'],
      [5, '', 'finished'],
    ],
  ],
])('%s', (_, steps, summary = {}) => {
  const reader = new AnswerReader()
  let received = 0
  for (const [value, text, progress, event] of steps) {
    expect(reader.addEvent(value, event), JSON.stringify(value)).toBe(text)
    expect(reader.progress(), JSON.stringify(value)).toBe(progress)
    if (text !== '') received++
    expect(reader.contentCount).toBe(received)
  }
  expect(reader.summary).toEqual(summary)
})

test.each([
  ['an image', [{ inlineData: { data: 'x' } }]],
  ['a text', [{ text: 'a' }]],
  ['an image with a text', [{ text: 'a' }, { inlineData: { data: 'x' } }]],
])('an answer of one value with %s and a finish reason is complete, and contentCount is 1', (_, parts) => {
  const reader = new AnswerReader()
  reader.addEvent(native({ content: { parts }, ...stop }))
  expect([reader.contentCount, reader.progress()]).toEqual([1, 'settled'])
})

test('an end marker ends an answer', () => {
  const reader = new AnswerReader()
  expect(reader.progress()).toBe('open')
  reader.end()
  expect(reader.progress()).toBe('ended')
})

test.each<[value: unknown, event: string, message: string | undefined, isCutOff: boolean]>([
  [{ error: { message: 'no' } }, '', 'no', false],
  [{ message: 'no such route' }, '', 'no such route', false],
  [{ error: { code: 503, message: 'busy' } }, '', 'busy', true],
  [{ error: { code: 429, message: 'slower' } }, '', 'slower', true],
  [{ error: { code: 401, message: 'who' } }, '', 'who', false],
  [delta('a').delta, 'ERROR', undefined, false],
  ['words', 'error', 'words', false],
  [{ response: { error: { message: 'inside' } } }, '', 'inside', false],
  [{ error: 'beside', response: { content: 'a' } }, '', 'beside', false],
  [{ success: false, message: 'beside', data: { content: 'a' } }, '', 'beside', false],
  [{ data: { error: { message: 'in data' } }, other: 1 }, '', 'in data', false],
])('the stream event %j named %j is an error', (value, event, serviceMessage, isCutOff) => {
  const reader = new AnswerReader()
  const failure = expect.objectContaining({
    kind: 'response',
    message: 'the stream ended with an error',
    details: expect.objectContaining({ isCutOff, ...(serviceMessage ? { serviceMessage } : {}) }),
  })
  expect(() => reader.addEvent(value, event)).toThrow(failure)
  expect(reader.progress()).toBe('open')
})

test.each<[body: unknown, text: string, summary?: AnswerSummary]>([
  [native(candidate('a', stop)), 'a', { stopReason: 'STOP' }],
  [{ content: 'a', usage }, 'a', { ...counted, lacksStopReason: true }],
  [{ data: { content: 'a' } }, 'a', { lacksStopReason: true }],
  [{ response: native(candidate('a')) }, 'a', { lacksStopReason: true }],
])('an answer is read from the whole body %j', (body, text, summary = {}) => {
  const reader = new AnswerReader()
  expect(reader.addBody(body)).toBe(text)
  expect([reader.progress(), reader.contentCount, reader.summary]).toEqual(['ended', 1, summary])
})

test.each([
  [{ error: { type: 'authentication_error', message: 'no' } }, 'credentials'],
  [{ data: { error: { type: 'rate_limit_error', message: 'no' } } }, 'rate-limited'],
  [{ other: 1 }, 'response'],
])('the whole body %j is a failure', (body, kind) => {
  const reader = new AnswerReader()
  expect(() => reader.addBody(body)).toThrow(expect.objectContaining({ kind }))
  expect(reader.contentCount).toBe(0)
})

const withParts = (...parts: object[]) => ({ content: { parts }, ...stop })
const [finalA, finalB] = ['a', 'b'].map((text) => withId(text, candidate(text, stop)))

test.each<[values: unknown[], otherContent: string[]]>([
  [[], []],
  [[{ type: 'surprise' }], ['something else']],
  [['words', native(candidate('a'))], ['something else']],
  [[native(stop)], []],
  [[{ content: [] }, { type: 'ping' }, delta('')], []],
  [[finalA, finalB], ['content after its end']],
  [[withId('a', candidate('a')), finalB], []],
  [[finalA, withId('a', candidate('b', stop))], []],
  [[finalA, native(candidate('b', stop))], []],
  [[native(candidate('a', stop)), finalB], []],
  [[withId('a', candidate('', stop)), finalB], []],
  [[finalA, withId('b', candidate('', stop))], []],
  [[withId('a', withParts({ text: 'a' }, { functionCall: {} })), finalB], ['a function call']],
  [[{ content: [{ type: 'x', output: 'a' }] }, native(withParts({ output: 'a' }))], ['something else']],
])('E34: the events %j have this non-text content: %j', (values, otherContent) => {
  const reader = new AnswerReader()
  for (const value of values) reader.addEvent(value)
  expect([...reader.otherContent]).toEqual(otherContent)
})
