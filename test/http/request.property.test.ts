import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RepeatRule, SentStatus } from '../../src/delivery-state.ts'
import { CliError, exitCodes, type FailureKind } from '../../src/errors.ts'
import { buildRequest, parseHeader } from '../../src/http/request.ts'
import { readRetryAfterSeconds } from '../../src/http/response.ts'
import { decideRetry } from '../../src/http/retry.ts'
import { endpoints } from '../../src/wire/endpoints.ts'
import { scaleRuns } from '../harness/property-runs.ts'
import { run } from '../harness/run.ts'

const text = fc.string({ unit: 'binary' })

const address = 'https://gateway.test/prefix'
const values = { baseUrl: address, agentsAuth: 'x-api-key' } as const

test('any model name stays within one segment of the URL path or is a usage error', () => {
  const property = fc.property(
    fc.oneof(text, fc.webSegment(), fc.constantFrom('..', '%2e.', 'a/../b')),
    (model) => {
      let url: URL
      try {
        const params = { family: 'alpha', model }
        url = new URL(buildRequest(endpoints.chat, { params }, values, new Map()).url)
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
  fc.assert(property, scaleRuns(500))
})

test('any value of -H is either one valid header or a usage error', () => {
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
  fc.assert(property, scaleRuns(500))
})

test('no message contains a part of a malformed access token', async () => {
  const property = fc.asyncProperty(text, async (rest) => {
    const ended = await run(['chat', 'x'], { env: { PARLEY_ACCESS_TOKEN: `s3cret${rest}` } })
    expect(ended.err).not.toContain('s3cret')
    if (ended.code === 3) expect(ended.requests).toEqual([])
    else expect(ended.requests[0]?.headers.Authorization).toMatch(/^Bearer s3cret[\x21-\x7e]*$/)
  })
  await fc.assert(property, scaleRuns(100))
})

const attempt = fc.record({
  kind: fc.constantFrom(...(Object.keys(exitCodes) as FailureKind[])),
  sent: fc.constantFrom<SentStatus>('no', 'unknown', 'yes'),
  status: fc.option(fc.integer({ min: 300, max: 599 }), { nil: undefined }),
  retryAfter: fc.option(fc.double({ min: 0, max: 100, noNaN: true }), { nil: undefined }),
  isPermanent: fc.boolean(),
})
const policy = fc.record({
  repeat: fc.constantFrom<RepeatRule>('unaccepted', 'failed', 'always'),
  retries: fc.nat(4),
  retryUnknown: fc.boolean(),
  deadlineMs: fc.constantFrom(Infinity, 1000, 5000, 100_000),
})

test('parley retries only within its limits, and retries an event only if the service certainly did not accept it', () => {
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
        ...(retryAfter === undefined ? {} : { retryAfterSeconds: retryAfter }),
      })
      const { deadlineMs } = rules
      const wait = decideRetry(rules, error, { attempt: number, now: 0, deadlineMs, random })
      if (wait instanceof CliError) return
      expect(number).toBeLessThanOrEqual(rules.retries)
      expect(isPermanent).toBe(false)
      expect(wait).toBeLessThanOrEqual(60_000)
      expect(wait).toBeGreaterThanOrEqual(Math.max(250, (retryAfter ?? 0) * 1000))
      expect(wait).toBeLessThan(deadlineMs)
      const isHarmless = kind === 'not-sent' || kind === 'rate-limited'
      if (rules.repeat === 'unaccepted') expect(isHarmless).toBe(true)
      if (kind === 'unknown') expect(rules.retryUnknown || rules.repeat === 'always').toBe(true)
    },
  )
  fc.assert(property, scaleRuns(2000))
})

test('any value of Retry-After is either a finite wait or ignored', () => {
  const value = fc.oneof(
    text,
    fc.nat().map(String),
    fc.date().map(String),
    fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    fc.stringMatching(/^\d{1,400}$/),
  )
  const property = fc.property(value, (one) => {
    const seconds = readRetryAfterSeconds({ 'retry-after': one }, Date.now())
    if (seconds !== undefined) expect(seconds).toSatisfy((n: number) => Number.isFinite(n) && n >= 0)
  })
  fc.assert(property, scaleRuns(100))
})
