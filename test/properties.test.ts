import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { CliError, type Kind, outcomes } from '../src/errors.ts'
import type { Repeat, Sent } from '../src/fate.ts'
import { draftRequest, parseHeader } from '../src/http/draft.ts'
import { decideRetry } from '../src/http/retry.ts'
import { readRetryAfter } from '../src/http/retry-after.ts'
import { escapeControls, escapeJson, oneLine } from '../src/io/escape.ts'
import { resolveSettings } from '../src/settings/resolve.ts'
import { endpoints } from '../src/wire/endpoints.ts'
import { editJson } from '../src/wire/json/edit.ts'
import { createArraySplitter } from '../src/wire/json/splitter.ts'
import { findFault } from '../src/wire/json/syntax.ts'
import { elementsOf } from '../src/wire/page.ts'
import { createSseDecoder, encodeSseEvent, type SseEvent } from '../src/wire/sse.ts'
import { answering, run } from './harness/run.ts'
import { cut, decodeAnswer } from './wire/decoding.ts'

const text = fc.string({ unit: 'binary' })
const unsafe = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/

const places = fc.array(fc.nat(), { maxLength: 30 })

describe('the decoder of server-sent events', () => {
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

  test('gives the same events however they are framed and cut', () => {
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
        // Without its blank a value that begins with one would lose it.
        const tight = hasBlank ? lines : lines.replace(/^(data|event): (?! )/gm, '$1:')
        const bytes = Buffer.from((hasMark ? '\ufeff' : '') + tight.replaceAll('\n', ending))
        expect(decode(cut(bytes, where))).toEqual(given.map(([, each]) => each))
      },
    )
    fc.assert(property, { numRuns: 500 })
  })

  test('survives any bytes, and gives the same for them however they are cut', () => {
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), places, (bytes, where) => {
      expect(decode(cut(bytes, where))).toEqual(decode([bytes]))
    })
    fc.assert(property, { numRuns: 500 })
  })
})

describe('JSON texts', () => {
  const isJson = (value: string) => {
    try {
      JSON.parse(value)
      return true
    } catch {
      return false
    }
  }
  const token = fc.constantFrom(
    ...[
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"\\""',
      '"',
      '\\',
      '1',
      '-0.5e3',
      '01',
      'null',
      'tru',
      ' ',
      '\n',
      '\x01',
    ],
    ...['{"a":1}', '[[],{}]', '"\\u0061"', '"\\x"'],
  )

  test('a fault is found where JSON.parse finds one, and nowhere else', () => {
    const near = fc
      .tuple(fc.json(), fc.nat(), token)
      .map(
        ([json, place, piece]) =>
          json.slice(0, place % json.length) + piece + json.slice(place % json.length),
      )
    const given = fc.oneof(
      fc.array(token, { maxLength: 10 }).map((tokens) => tokens.join('')),
      near,
      fc.json(),
    )
    const property = fc.property(given, (json) => {
      expect(findFault(json, 1000) === undefined).toBe(isJson(json))
    })
    fc.assert(property, { numRuns: 2000 })
  })

  const spaced = fc
    .tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom('', ' ', '\n', '\t'))
    .map(([value, space]) => ({ value, json: JSON.stringify(value, null, space) }))
  const key = fc.string({ minLength: 1 })

  test('an edit sets or adds one value, and leaves the rest', () => {
    const property = fc.property(spaced, key, fc.jsonValue(), ({ value, json }, name, set) => {
      const assignment = { path: [name], appends: false, json: JSON.stringify(set), source: '' }
      const wanted = Object.fromEntries([...Object.entries(value), [name, JSON.parse(JSON.stringify(set))]])
      expect(JSON.parse(editJson(json, [assignment]))).toEqual(JSON.parse(JSON.stringify(wanted)))
    })
    fc.assert(property, { numRuns: 1000 })
  })

  test('elements are those of the list, and additions follow them', () => {
    const property = fc.property(fc.array(fc.jsonValue()), spaced, (list, { json }) => {
      const start = json.slice(0, -1) + (json.length > 2 ? ',' : '')
      const text = `${start}"the list": ${JSON.stringify(list, null, 1)}}`
      const added = [1, 2].map((number) => ({
        path: ['the list'],
        appends: true,
        json: `${number}`,
        source: '',
      }))
      const elements = elementsOf(editJson(text, added), 'the list')
      expect(elements.map((element) => JSON.parse(element))).toEqual(
        JSON.parse(JSON.stringify([...list, 1, 2])),
      )
    })
    fc.assert(property, { numRuns: 1000 })
  })
})

test('the splitter of arrays gives the same elements however they are cut', () => {
  const property = fc.property(
    fc.array(fc.jsonValue(), { maxLength: 6 }),
    fc.nat(2),
    places,
    (values, space, where) => {
      const splitter = createArraySplitter()
      const decoder = new TextDecoder()
      const pieces = cut(Buffer.from(JSON.stringify(values, null, space)), where)
      const found = pieces.flatMap((piece) => splitter.push(decoder.decode(piece, { stream: true })))
      expect(found.map((element) => JSON.parse(element))).toEqual(JSON.parse(JSON.stringify(values)))
      expect(splitter.closed).toBe(true)
    },
  )
  fc.assert(property, { numRuns: 300 })
})

describe('an answer', () => {
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

  test('has the same text, raw bytes, facts and end however its bytes are cut', () => {
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
    fc.assert(property, { numRuns: 1500 })
  })

  test('prints the same, with the same exit code, however its bytes are cut', async () => {
    const property = fc.asyncProperty(
      type,
      body,
      places,
      fc.boolean(),
      async (contentType, bytes, where, isRaw) => {
        const argv = ['chat', 'x', '--stream', '-q', ...(isRaw ? ['--raw'] : [])]
        const headers = { 'content-type': contentType }
        const [whole, pieces] = await Promise.all(
          [[bytes], cut(bytes, where)].map((each) => run(argv, { exchange: answering(each, { headers }) })),
        )
        expect(pieces).toMatchObject({ code: whole?.code, out: whole?.out, err: whole?.err })
        expect(whole?.code).not.toBe(1)
      },
    )
    await fc.assert(property, { numRuns: 100 })
  })
})

describe('escaping', () => {
  test('lets no control character through, and keeps all else in its place', () => {
    const property = fc.property(fc.array(text), (pieces) => {
      const escaped = escapeControls(pieces.join(''))
      expect(escaped).not.toMatch(unsafe)
      expect(escaped).toBe(pieces.map(escapeControls).join(''))
      const kept = [...pieces.join('')].filter((char) => !unsafe.test(char))
      let at = 0
      for (const char of kept) at = escaped.indexOf(char, at) + char.length
      expect(at).toBeLessThanOrEqual(escaped.length)
      if (kept.length === [...pieces.join('')].length) expect(escaped).toBe(pieces.join(''))
    })
    fc.assert(property)
  })

  test('makes one line, of no more than it may have', () => {
    const property = fc.property(text, fc.integer({ min: 1, max: 60 }), (value, length) => {
      const line = oneLine(value, length)
      expect(line).not.toMatch(/[\n\t]/)
      expect(line).not.toMatch(unsafe)
      expect([...line].length).toBeLessThanOrEqual(length)
    })
    fc.assert(property)
  })

  test('keeps the meaning of JSON', () => {
    const property = fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      const json = JSON.stringify(value)
      expect(JSON.parse(escapeJson(json))).toEqual(JSON.parse(json))
      expect(escapeJson(json)).not.toMatch(/[\x7f-\x9f\u202a-\u202e\u2066-\u2069]/)
    })
    fc.assert(property)
  })
})

describe('--raw is the identity on bytes', () => {
  test.each([200, 400])('of an answer of status %i', async (status) => {
    const property = fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), places, async (rest, where) => {
      const bytes = Buffer.concat([Buffer.from('{'), rest])
      const exchange = answering(cut(bytes, where), { status })
      const { outBytes } = await run(['chat', 'x', '--raw', '--retries', '0'], { exchange })
      expect(Buffer.from(outBytes).equals(bytes)).toBe(true)
    })
    await fc.assert(property, { numRuns: 50 })
  })
})

describe('values never break out', () => {
  const address = 'https://gateway.test/prefix'

  test('of the path', () => {
    const property = fc.property(
      fc.oneof(text, fc.webSegment(), fc.constantFrom('..', '%2e.', 'a/../b')),
      (model) => {
        let url: URL
        try {
          url = new URL(draftRequest(endpoints.chat, { address, params: { family: 'alpha', model } }).url)
        } catch (error) {
          expect((error as CliError).kind).toBe('usage')
          return
        }
        expect(url.href.startsWith(`${address}/alpha_cli/v1beta/models/`)).toBe(true)
        const segments = url.pathname.split('/')
        expect(segments).toHaveLength(6)
        expect(decodeURIComponent(segments[5] as string)).toBe(`${model}:generateContent`)
        expect(url.search + url.hash).toBe('')
      },
    )
    fc.assert(property, { numRuns: 500 })
  })

  test('of a header', () => {
    const property = fc.property(
      fc.oneof(
        text,
        fc.tuple(fc.webSegment(), text).map((pair) => pair.join(':')),
      ),
      (line) => {
        try {
          const [name, value] = parseHeader(line)
          expect(name).toMatch(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/)
          expect(value).toMatch(/^[\t\x20-\x7e]*$/)
        } catch (error) {
          expect((error as CliError).kind).toBe('usage')
        }
      },
    )
    fc.assert(property, { numRuns: 500 })
  })

  test('of a secret, which no message quotes', async () => {
    const property = fc.asyncProperty(text, async (rest) => {
      const ended = await run(['chat', 'x'], { env: { PARLEY_ACCESS_TOKEN: `s3cret${rest}` } })
      expect(ended.err).not.toContain('s3cret')
      if (ended.code === 3) expect(ended.requests).toEqual([])
      else expect(ended.requests[0]?.headers.Authorization).toMatch(/^Bearer s3cret[\x21-\x7e]*$/)
    })
    await fc.assert(property)
  })
})

describe('the decision to try again', () => {
  const attempt = fc.record({
    kind: fc.constantFrom(...(Object.keys(outcomes) as Kind[])),
    sent: fc.constantFrom<Sent>('no', 'unknown', 'yes'),
    status: fc.option(fc.integer({ min: 300, max: 599 }), { nil: undefined }),
    retryAfter: fc.option(fc.double({ min: 0, max: 100, noNaN: true }), { nil: undefined }),
    isPermanent: fc.boolean(),
  })
  const policy = fc.record({
    repeat: fc.constantFrom<Repeat>('not-taken', 'failed', 'always'),
    retries: fc.nat(4),
    retryUnknown: fc.boolean(),
    deadline: fc.constantFrom(0, 1000, 5000, 100_000),
  })

  test('keeps to the limits, and never sends twice what may have been taken', () => {
    const property = fc.property(
      attempt,
      policy,
      fc.integer({ min: 1, max: 6 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (failed, rules, number, random) => {
        const { kind, retryAfter, isPermanent, status, sent } = failed
        const error = new CliError(kind, 'x', {
          sent,
          isPermanent,
          ...(status === undefined ? {} : { status }),
        })
        const found = { error, ...(retryAfter === undefined ? {} : { retryAfter }) }
        const decision = decideRetry(rules, found, { attempt: number, now: 0, random })
        if (!decision.again) return
        expect(number).toBeLessThanOrEqual(rules.retries)
        expect(isPermanent).toBe(false)
        expect(decision.wait).toBeLessThanOrEqual(60_000)
        expect(decision.wait).toBeGreaterThanOrEqual(Math.max(250, (retryAfter ?? 0) * 1000))
        if (rules.deadline > 0) expect(decision.wait).toBeLessThan(rules.deadline)
        const isHarmless = kind === 'not-sent' || kind === 'rate-limited'
        if (rules.repeat === 'not-taken') expect(isHarmless).toBe(true)
        if (kind === 'unknown') expect(rules.retryUnknown || rules.repeat === 'always').toBe(true)
      },
    )
    fc.assert(property, { numRuns: 2000 })
  })

  test('any Retry-After is a wait or nothing', async () => {
    const value = fc.oneof(
      text,
      fc.nat().map(String),
      fc.date().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
      fc.stringMatching(/^\d{1,400}$/),
    )
    const property = fc.asyncProperty(value, value, async (one, other) => {
      const seconds = await readRetryAfter({ 'retry-after': one, 'retry-after-ms': other }, Date.now())
      if (seconds !== undefined) expect(seconds).toSatisfy((n: number) => Number.isFinite(n) && n >= 0)
    })
    await fc.assert(property)
  })
})

test('a setting comes from the first place that has it', () => {
  const value = fc.option(fc.integer({ min: 1, max: 999 }), { nil: undefined })
  const property = fc.property(value, value, value, fc.boolean(), (flag, profile, env, isNamed) => {
    const { values } = resolveSettings({
      flags: flag === undefined ? {} : { timeout: { value: String(flag), flag: '--timeout' } },
      profile: { name: 'p', isNamed, values: profile === undefined ? {} : { timeout: profile } },
      env: { PARLEY_TIMEOUT: env === undefined ? '' : String(env) },
    })
    const [second, third] = isNamed ? [profile, env] : [env, profile]
    expect(values.timeout).toBe(flag ?? second ?? third ?? 600)
  })
  fc.assert(property)
})
