import { expect, test } from 'vitest'
import { type NativeAnswerPiece, readNativeAnswer } from '../../../src/wire/gateway/answer-forms.ts'

interface Piece extends Partial<Omit<NativeAnswerPiece, 'isUnfinished'>> {
  /** `undefined` if the value has no candidates. */
  isFinished?: boolean
}

function read(value: Record<string, unknown>, expected: Piece): void {
  const { text = '', summary = {}, otherContent = [], ...more } = expected
  const { isUnfinished, ...piece } = readNativeAnswer(value)
  const open = Object.values(isUnfinished)
  const isFinished = open.length > 0 ? !open.includes(true) : undefined
  expect({ ...piece, isFinished }).toEqual({ text, summary, otherContent, ...more })
}

/** Returns an answer with one candidate that has these parts. */
const parts = (...parts: unknown[]) => ({ candidates: [{ content: { role: 'model', parts } }] })
const open = { isFinished: false }

test('text, finish reason, usage, model and id of an answer in the native format are read', () => {
  const texts = [{ text: 'a' }, { text: 'b', thought: true }, { text: 'c', thought: false }]
  const content = { role: 'model', parts: texts }
  const answer = {
    candidates: [{ content, finishReason: 'STOP', finishMessage: 'why', index: 0 }],
    ...{ responseId: 'i', modelVersion: 'm' },
    usageMetadata: {
      ...{ promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 9 },
      ...{ thoughtsTokenCount: 4, cachedContentTokenCount: 5 },
    },
  }
  const summary = { id: 'i', model: 'm', stopReason: 'STOP', stopMessage: 'why' }
  const parts = { reasoningTokens: 4, cacheReadInputTokens: 5 }
  const counts = { inputTokens: 1, outputTokens: 6, ...parts, totalTokens: 9 }
  read(answer, { text: 'ac', summary, isFinished: true, counts, otherContent: ['thoughts'] })
})

test.each<[answer: Record<string, unknown>, piece: Piece]>([
  [{}, {}],
  [{ candidates: null, promptFeedback: null, responseId: null, modelVersion: 5, usageMetadata: 'x' }, {}],
  [{ candidates: [] }, {}],
  [parts(), open],
  [parts('a', { text: 'b' }, { text: null }), { text: 'ab', ...open }],
  [{ candidates: [{ content: 'a' }] }, { text: 'a', ...open }],
  [{ candidates: [{ content: { parts: 'a' } }] }, { text: 'a', ...open }],
  [{ candidates: [{ content: { parts: { text: 'a' } } }] }, { text: 'a', ...open }],
  [{ candidates: [{ content: null, index: 'x', finishReason: {}, finishMessage: 5 }] }, open],
])('text and completeness are read from the native answer %j', (answer, piece) => read(answer, piece))

const candidate = (text: string, more: object = {}) => ({ content: { parts: [{ text }] }, ...more })
const finished = { finishReason: 'STOP' }
const otherContent = ['another candidate' as const]
const first: Piece = { text: 'a', isFinished: false, otherContent }

test.each<[candidates: object[], piece: Piece]>([
  [[candidate('b', { index: 1 }), candidate('a', { index: 0 })], first],
  [[candidate('a'), candidate('b')], first],
  [
    [candidate('a', finished), candidate('b', { index: 1 }), candidate('c', { index: 2, ...finished })],
    { ...first, summary: { stopReason: 'STOP' } },
  ],
  [[candidate('a'), candidate('b', finished)], first],
  [[candidate('b', { index: 1, ...finished })], { isFinished: true, otherContent }],
  [[{ index: 1, ...finished }], { isFinished: true }],
])('E18: the text of a native answer is read from its first candidate by index: %j', (candidates, piece) =>
  read({ candidates }, piece),
)

test.each<[reason: unknown, stopReason: string | undefined]>([
  ['MAX_TOKENS', 'MAX_TOKENS'],
  ['', undefined],
  ['FINISH_REASON_UNSPECIFIED', undefined],
  ['UNSPECIFIED_x', 'UNSPECIFIED_x'],
  [0, undefined],
  ...['STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII'].map(
    (name, index): [number, string] => [index + 1, name],
  ),
  [9, 'MALFORMED_FUNCTION_CALL'],
  [10, '10'],
  [true, undefined],
])('E39: the native finish reason %j is read as %j', (finishReason, stopReason) => {
  const summary = stopReason === undefined ? {} : { stopReason }
  read({ candidates: [{ finishReason }] }, { summary, isFinished: stopReason !== undefined })
})

const blockedBy = (reason: string): Piece => ({
  summary: { stopReason: reason, blockReason: reason },
  isFinished: true,
})
const promptFeedback = { blockReason: 'x', blockReasonMessage: 'y' }

test.each<[answer: Record<string, unknown>, piece: Piece]>([
  [{ promptFeedback: { blockReason: 'x' } }, blockedBy('x')],
  [{ promptFeedback: { blockReason: 2 } }, blockedBy('2')],
  [{ promptFeedback: { blockReason: 0, blockReasonMessage: '' } }, {}],
  [{ promptFeedback: { blockReason: {}, blockReasonMessage: 5 } }, {}],
  [{ promptFeedback: 'x' }, {}],
  [{ promptFeedback: { blockReasonMessage: 'why' } }, { summary: { stopMessage: 'why' } }],
  [
    { candidates: [{ finishReason: 'STOP', finishMessage: '' }], promptFeedback },
    { summary: { stopReason: 'STOP', stopMessage: 'y' }, isFinished: true },
  ],
  [
    { candidates: [{ finishMessage: 'a' }], promptFeedback },
    { summary: { stopReason: 'x', stopMessage: 'a' }, isFinished: true },
  ],
])('the reason of a blocked prompt is read from %j', (answer, piece) => read(answer, piece))

const used = (promptTokenCount: unknown, totalTokenCount: unknown, more: object = {}) => ({
  ...{ promptTokenCount, totalTokenCount, ...more },
})
const unknown = { outputTokens: null, totalTokens: null }

test.each<[usageMetadata: object, counts: NativeAnswerPiece['counts']]>([
  [{}, {}],
  [
    used('1', null, { candidatesTokenCount: [2], thoughtsTokenCount: {}, cachedContentTokenCount: '5' }),
    { inputTokens: null, cacheReadInputTokens: null, reasoningTokens: null, ...unknown },
  ],
  [{ promptTokenCount: 1 }, { inputTokens: 1 }],
  [used(1, '9'), { inputTokens: 1, ...unknown }],
  [used('1', 9), { inputTokens: null, outputTokens: null, totalTokens: 9 }],
  [{ totalTokenCount: 9 }, { totalTokens: 9 }],
  [used(1, 9), { inputTokens: 1, outputTokens: 8, totalTokens: 9 }],
  [used(9, 9), { inputTokens: 9, outputTokens: 0, totalTokens: 9 }],
  [used(10, 9), { inputTokens: 10, totalTokens: 9 }],
  [used(1, 9, { candidatesTokenCount: 2 }), { inputTokens: 1, outputTokens: 2, totalTokens: 9 }],
  [{ thoughtsTokenCount: 4 }, { outputTokens: 4, reasoningTokens: 4 }],
])('E40: the native usage %j is read as %j', (usageMetadata, counts) => read({ usageMetadata }, { counts }))

test.each<[part: object, has: Piece]>([
  [{ functionCall: {} }, { otherContent: ['a function call'] }],
  [{ function_call: { name: 'x' } }, { otherContent: ['a function call'] }],
  [{ functionCall: null, function_call: '' }, {}],
  [{ content: 'a' }, { otherContent: ['something else'] }],
  [{ text: null, parts: ['a'] }, { otherContent: ['something else'] }],
  [{ inlineData: { data: 'x' } }, { otherContent: ['an image'] }],
  [{ inline_data: { data: 'x' } }, { otherContent: ['an image'] }],
  [{ inlineData: { mimeType: 'IMAGE/PNG' } }, { otherContent: ['an image'] }],
  [{ inlineData: { mimeType: 'audio/wav' } }, { otherContent: ['a file'] }],
  [{ fileData: { fileUri: 'a' } }, { otherContent: ['a file'] }],
  [{ executableCode: {}, thought: false }, { otherContent: ['code'] }],
  [{ text: 'a', thought: true, thoughtSignature: 'b' }, { otherContent: ['thoughts'] }],
])('of an answer in the native form, the part %j is read as %j', (part, has) =>
  read(parts({}, part, {}), { ...open, ...has }),
)

test.each<[candidate: object, verb: 'has' | 'does not have']>([
  [{ content: { text: 'a' } }, 'has'],
  [{ content: { role: 'model', parts: null } }, 'does not have'],
  [{ content: { role: 'model' }, output: 'a' }, 'does not have'],
])('the native candidate %j %s content in an unknown field', (candidate, verb) =>
  read({ candidates: [candidate] }, { ...open, otherContent: verb === 'has' ? ['something else'] : [] }),
)

test.each<[answer: Record<string, unknown>, text?: string]>([
  [{ candidates: 5 }],
  [{ candidates: ['a'] }],
  [{ candidates: { text: 'a' } }],
  [{ candidates: { parts: [{ text: 'a' }] } }],
  [{ candidates: [{ content: 5 }] }],
  [{ candidates: [{ content: { parts: 5 } }] }],
  [parts({ text: 5 })],
  [parts('a', 5), 'a'],
])('the native answer %j has the text %j and an unreadable part', (answer, text = '') =>
  read(answer, { text, ...open, otherContent: ['an unreadable part'] }),
)
