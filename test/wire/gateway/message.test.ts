import { expect, test } from 'vitest'
import type { AnswerSummary, NonTextContent } from '../../../src/wire/gateway/answer-forms.ts'
import { readMessageAnswer, readMessageEvent, readTextDelta } from '../../../src/wire/gateway/answer-forms.ts'

const usageOf = (input_tokens: unknown, output_tokens: unknown, cached: unknown, created: unknown) => ({
  ...{ input_tokens, output_tokens },
  ...{ cache_read_input_tokens: cached, cache_creation_input_tokens: created },
})
const usage = usageOf(1, 2, 3, 4)
const counts = { inputTokens: 1, outputTokens: 2, cacheReadInputTokens: 3, cacheCreationInputTokens: 4 }
const oddUsage = usageOf('1', null, [3], { a: 4 })
const oddCounts = { inputTokens: null, cacheReadInputTokens: null, cacheCreationInputTokens: null }

interface Piece {
  text?: string
  summary?: AnswerSummary
  otherContent?: NonTextContent[]
}
const textPart = { type: 'text', text: 'a' }
const whole = ({ text = '', summary = {}, otherContent = [] }: Piece) => ({ text, summary, otherContent })

test.each<[fields: Record<string, unknown>, piece: Piece]>([
  [
    { id: 'i', type: 'message', content: [textPart, { text: 'b' }], model: 'm', stop_reason: 's', usage },
    { text: 'ab', summary: { id: 'i', model: 'm', stopReason: 's', ...counts } },
  ],
  [{ id: 1, content: [], model: ['m'], stop_reason: {}, usage: 'x' }, {}],
  [{ id: null, content: [], model: null, stop_reason: null, usage: oddUsage }, { summary: oddCounts }],
  [{ content: 'a' }, { text: 'a' }],
  [{ content: ['a', 5] }, { text: 'a', otherContent: ['an unreadable part'] }],
  [{ content: { text: 5 } }, { otherContent: ['an unreadable part'] }],
  [{ content: { type: 'text', text: 'a' } }, { text: 'a' }],
  [{ content: ['a', { text: 'b' }, { text: null }, {}, { type: 5, text: 'c' }] }, { text: 'abc' }],
  ...Object.entries<NonTextContent[]>({
    thinking: ['thoughts'],
    redacted_THINKING: ['thoughts'],
    reasoning: ['thoughts'],
    tool_use: ['a function call'],
    server_tool_use: ['work of a server tool'],
    web_search_tool_result: ['work of a server tool'],
    input_json: ['a function call'],
    signature: [],
    citations: [],
  }).map(([type, otherContent]): [Record<string, unknown>, Piece] => [
    { content: [{ type, text: 'a', content: 'b' }, 'c'] },
    { text: 'c', otherContent },
  ]),
  [{ content: [{ type: 'x', content: 'a' }, 'b'] }, { text: 'b', otherContent: ['something else'] }],
  [{ content: [{ text: null, parts: ['a'] }] }, {}],
  [{ content: ['a', { type: 'image', source: {} }] }, { text: 'a', otherContent: ['an image'] }],
  [{ content: { text: 'a', content: 'b' } }, { text: 'a' }],
])('R50: text, metadata and other content are read from the message answer %j', (fields, piece) =>
  expect(readMessageAnswer(fields)).toEqual(whole(piece)),
)

const abc = { text: 'abc' }
const event = (type: string, fields: object = {}) => ({ type, ...fields })

test.each<[event: Record<string, unknown>, piece: Piece]>([
  [
    event('message_start', { message: { id: 'i', model: 'm', content: ['a'], stop_reason: 's', usage } }),
    { text: 'a', summary: { id: 'i', model: 'm', stopReason: 's', ...counts } },
  ],
  [
    event('message_start', { message: { id: 1, model: 2, stop_reason: 3, usage: oddUsage }, usage: 'x' }),
    { summary: oddCounts },
  ],
  [event('message_start', { message: 'a' }), { text: 'a' }],
  [event('message_start', { message: 5 }), { otherContent: ['an unreadable part'] }],
  [event('message_start', { message: null, content_block: null, delta: null, usage: null }), {}],
  [
    event('message_delta', { delta: { stop_reason: '1' }, usage }),
    { summary: { stopReason: '1', ...counts } },
  ],
  [event('message_delta', { delta: { stop_reason: 1 }, usage: oddUsage }), { summary: oddCounts }],
  [
    event('message_delta', {
      message: { stop_reason: 'old', usage: { input_tokens: 1, output_tokens: 1 } },
      delta: { stop_reason: 'new' },
      usage: { output_tokens: 2 },
    }),
    { summary: { stopReason: 'new', inputTokens: 1, outputTokens: 2 } },
  ],
  [event('content_block_start', { content_block: { type: 'text', text: 'a' } }), { text: 'a' }],
  [event('content_block_start', { content_block: 'a' }), { text: 'a' }],
  [event('content_block_start', { content_block: { type: 'thinking' } }), { otherContent: ['thoughts'] }],
  [event('content_block_delta', { delta: { type: 'text_delta', text: 'a' } }), { text: 'a' }],
  [event('content_block_delta', { delta: 'a' }), { text: 'a' }],
  [event('content_block_delta', { delta: { type: 'thinking_delta' } }), { otherContent: ['thoughts'] }],
  [event('content_block_delta', { delta: { type: 'text_delta' } }), { otherContent: ['something else'] }],
  [event('content_block_delta', { delta: null }), {}],
  [event('content_block_delta'), {}],
  [event('content_block_stop', { message: { content: 'a' }, content_block: 'b', delta: 'c' }), abc],
])('E33: text, metadata and other content are read from the message event %j', (value, piece) =>
  expect(readMessageEvent(value)).toEqual(whole(piece)),
)

test.each([
  [event('content_block_delta', { delta: { type: 'text_delta', text: 'a' } }), 'a'],
  [event('content_block_delta', { delta: { type: 'text_delta', text: '' } }), ''],
  [event('content_block_delta', { delta: { type: 'text_delta', text: 5 } }), undefined],
  [event('content_block_delta', { delta: { type: 'thinking_delta', text: 'a' } }), undefined],
  [event('content_block_start', { delta: { type: 'text_delta', text: 'a' } }), undefined],
  [event('content_block_delta'), undefined],
  [event('content_block_delta', { delta: null }), undefined],
  [null, undefined],
  ['content_block_delta', undefined],
])('the text delta of the event %j is %j', (value, text) => {
  expect(readTextDelta(value)).toBe(text)
  if (text !== undefined) expect(readMessageEvent(value as { type: string })).toEqual(whole({ text }))
})
