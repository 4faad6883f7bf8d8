import fc from 'fast-check'
import { expect, test } from 'vitest'
import { editJson } from '../../src/wire/json/edit.ts'
import { scaleRuns } from '../harness/property-runs.ts'
import { cut, decodeAnswer } from './decoding.ts'

const spaced = fc
  .tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom('', ' ', '\n', '\t'))
  .map(([value, space]) => ({ value, json: JSON.stringify(value, null, space) }))
const key = fc.string({ minLength: 1 })

test('a JSON edit sets or adds one value and leaves the rest of the text unchanged', () => {
  const property = fc.property(spaced, key, fc.jsonValue(), ({ value, json }, name, set) => {
    const assignment = { path: [name], appends: false, json: JSON.stringify(set), source: '' }
    const wanted = Object.fromEntries([...Object.entries(value), [name, JSON.parse(JSON.stringify(set))]])
    expect(JSON.parse(editJson(json, [assignment]))).toEqual(JSON.parse(JSON.stringify(wanted)))
  })
  fc.assert(property, scaleRuns(1000))
})

const places = fc.array(fc.nat(), { maxLength: 30 })
const content = { parts: [{ text: 'é🦜' }] }
const chunk = (more: object) => JSON.stringify({ candidates: [{ content, ...more }] })
const value = fc.constantFrom(
  chunk({}),
  chunk({ finishReason: 'STOP' }),
  chunk({ finishReason: 2, index: 1 }),
  '{"type":"content_block_delta","delta":{"type":"text_delta","text":"é"}}',
  '{"type":"content_block_start","content_block":"x"}',
  '{"type":"message_stop"}',
  '{"content":[{"type":"text","text":"ü"}],"stop_reason":"end_turn"}',
  '{\n "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 3}\n}',
  '{"type":"constructor","text":"__proto__"}',
  ...['{"error":{"message":"no"}}', '[DONE]', 'ping', 'null', '{"torn":', '\u00ff'],
)
const frame = fc.constantFrom(
  ...['data: #\n\n', 'data:#\r\n\r\n', '#\n', '#', ',#', '[#', '#]', 'event: error\ndata: #\n\n', ': #\n'],
  ...['\ufeff#', ' #\n\n', 'data: #'],
)
const type = fc.constantFrom(
  ...['text/event-stream', 'text/event-stream; charset=latin1', 'application/json', 'text/html', ''],
  ...['application/json; charset=iso-8859-1', 'application/x-ndjson'],
)
const body = fc
  .tuple(fc.array(fc.tuple(frame, value), { maxLength: 6 }), fc.boolean(), fc.nat(40))
  .map(([parts, isLatin, torn]) => {
    const all = parts
      .map(([around, inner]) =>
        around.replace('#', () => inner.replaceAll('\n', around.startsWith('data') ? '\ndata: ' : '\n')),
      )
      .join('')
    const bytes = Buffer.from(all, isLatin ? 'latin1' : 'utf8')
    return bytes.subarray(0, bytes.length - (torn > 20 ? torn - 20 : 0))
  })

test('an answer has the same text, raw bytes, details and end, whatever the chunks in which it arrives', () => {
  const property = fc.property(type, body, places, (contentType, bytes, where) => {
    const whole = decodeAnswer(contentType, [bytes])
    expect(decodeAnswer(contentType, cut(bytes, where))).toEqual(whole)
    const single = [...bytes].map((byte) => Uint8Array.of(byte))
    expect(decodeAnswer(contentType, single)).toEqual(whole)
  })
  fc.assert(property, scaleRuns(1500))
})
