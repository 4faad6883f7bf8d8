import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createListAppendAssignment, editJson } from '../../src/wire/json/edit.ts'
import { createJsonArraySplitter } from '../../src/wire/json/splitter.ts'
import { listJsonElements } from '../../src/wire/page.ts'
import { createSseDecoder, encodeSseEvent, type SseEvent } from '../../src/wire/sse.ts'
import { scaleRuns } from '../harness/property-runs.ts'
import { cut, decodeAnswer } from './decoding.ts'

const text = fc.string({ unit: 'binary' })
const places = fc.array(fc.nat(), { maxLength: 30 })

describe('server-sent events are read the same for every split', () => {
  const line = text.map((value) => value.replace(/[\r\n]/g, ' '))
  const event = fc.record({
    event: line,
    data: fc.array(line, { minLength: 1 }).map((lines) => lines.join('\n')),
  })
  const noise = fc.constantFrom('', ': comment\n', 'id: 7\n', 'retry: 1\n', 'strange\n', 'other: x\n', '\n')
  const decode = (pieces: Uint8Array[]): SseEvent[] => {
    const decoder = createSseDecoder()
    return pieces.flatMap((piece) => decoder.push(piece))
  }

  test('the decoder returns the same server-sent events for every line ending and every split into chunks', () => {
    const framing = fc.record({
      ending: fc.constantFrom('\n', '\r', '\r\n'),
      hasBlank: fc.boolean(),
      hasMark: fc.boolean(),
    })
    const property = fc.property(
      fc.array(fc.tuple(noise, event), { maxLength: 8 }),
      framing,
      places,
      (given, { ending, hasBlank, hasMark }, where) => {
        const lines = given.map(([before, each]) => before + encodeSseEvent(each)).join('')
        // A value that starts with a blank needs the blank after the colon.
        const tight = hasBlank ? lines : lines.replace(/^(data|event): (?! )/gm, '$1:')
        const bytes = Buffer.from((hasMark ? '\ufeff' : '') + tight.replaceAll('\n', ending))
        expect(decode(cut(bytes, where))).toEqual(given.map(([, each]) => each))
      },
    )
    fc.assert(property, scaleRuns(500))
  })

  test('the decoder of server-sent events accepts any bytes, and returns the same for every split into chunks', () => {
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), places, (bytes, where) => {
      expect(decode(cut(bytes, where))).toEqual(decode([bytes]))
    })
    fc.assert(property, scaleRuns(500))
  })
})

describe('JSON edits', () => {
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

  test('a JSON edit that appends to an array adds the new elements after the existing ones', () => {
    const property = fc.property(fc.array(fc.jsonValue()), spaced, (list, { json }) => {
      const start = json.slice(0, -1) + (json.length > 2 ? ',' : '')
      const text = `${start}"the list": ${JSON.stringify(list, null, 1)}}`
      const added = [1, 2].map((number) => createListAppendAssignment(['the list'], `${number}`))
      const elements = listJsonElements(editJson(text, added), 'the list')
      expect(elements.map((element) => JSON.parse(element))).toEqual(
        JSON.parse(JSON.stringify([...list, 1, 2])),
      )
    })
    fc.assert(property, scaleRuns(1000))
  })
})

test('the splitter returns the same elements of a JSON array, whatever the chunks in which it arrives', () => {
  const property = fc.property(
    fc.array(fc.jsonValue(), { maxLength: 6 }),
    fc.nat(2),
    places,
    (values, space, where) => {
      const splitter = createJsonArraySplitter()
      const decoder = new TextDecoder()
      const pieces = cut(Buffer.from(JSON.stringify(values, null, space)), where)
      const found = pieces.flatMap((piece) => splitter.push(decoder.decode(piece, { stream: true })))
      expect(found.map((element) => JSON.parse(element))).toEqual(JSON.parse(JSON.stringify(values)))
      expect(splitter.isInside()).toBe(false)
    },
  )
  fc.assert(property, scaleRuns(300))
})

describe('an answer is read the same for every split', () => {
  const chunk = (more: object) =>
    JSON.stringify({ candidates: [{ content: { parts: [{ text: 'é🦜' }] }, ...more }] })
  const value = fc.constantFrom(
    chunk({}),
    chunk({ finishReason: 'STOP' }),
    chunk({ finishReason: 2, index: 1 }),
    '{"type":"content_block_delta","delta":{"type":"text_delta","text":"é"}}',
    '{"type":"content_block_start","content_block":"x"}',
    '{"type":"message_stop"}',
    '{"content":[{"type":"text","text":"ü"}],"stop_reason":"end_turn"}',
    '{\n "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 3}\n}',
    '{"error":{"message":"no"}}',
    '{"type":"constructor","text":"__proto__"}',
    '[DONE]',
    'ping',
    'null',
    '{"torn":',
    '\u00ff',
  )
  const frame = fc.constantFrom(
    'data: #\n\n',
    'data:#\r\n\r\n',
    '#\n',
    '#',
    ',#',
    '[#',
    '#]',
    'event: error\ndata: #\n\n',
    ': #\n',
    '\ufeff#',
    ' #\n\n',
    'data: #',
  )
  const type = fc.constantFrom(
    'text/event-stream',
    'text/event-stream; charset=latin1',
    'application/json',
    'application/json; charset=iso-8859-1',
    'application/x-ndjson',
    'text/html',
    '',
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
      expect(
        decodeAnswer(
          contentType,
          [...bytes].map((byte) => Uint8Array.of(byte)),
        ),
      ).toEqual(whole)
    })
    fc.assert(property, scaleRuns(1500))
  })
})
