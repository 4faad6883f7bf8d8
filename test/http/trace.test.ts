import { expect, test } from 'vitest'
import { run } from '../harness/run.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const parent = `00-${trace}-b7ad6b7169203331-01`

const headersOf = async (env: Record<string, string>, ...flags: string[]) => {
  const ended = await run(['chat', 'hi', ...flags], { env })
  expect(ended.code).toBe(0)
  const { headers = {} } = ended.requests[0] ?? {}
  return { parent: headers.traceparent, state: headers.tracestate, err: ended.err }
}

test('each command that sends a request forwards TRACEPARENT and TRACESTATE', async () => {
  const env = { TRACEPARENT: parent, TRACESTATE: 'congo=t61rcWkgMzE, rojo=00f067aa0ba902b7' }
  expect(await headersOf(env)).toMatchObject({ parent, state: env.TRACESTATE })
  const { requests } = await run(['events', 'list', '-s', 'sesn_1'], { env })
  expect(requests[0]?.headers).toMatchObject({ traceparent: parent })
  const api = await run(['api', 'gateway', '/v1/models'], { env })
  expect(api.requests[0]?.headers).toMatchObject({ traceparent: parent })
})

test('--dry-run and --curl show traceparent', async () => {
  const env = { TRACEPARENT: parent }
  const { out } = await run(['chat', 'hi', '--dry-run'], { env })
  expect(JSON.parse(out).headers.traceparent).toBe(parent)
  expect((await run(['chat', 'hi', '--curl'], { env })).out).toContain(`traceparent: ${parent}`)
})

test.each([
  ['a later version', `01-${trace}-b7ad6b7169203331-09`],
  ['a later version and an extra field', `cc-${trace}-b7ad6b7169203331-01-what-ever`],
])('TRACEPARENT with %s is forwarded', async (_, text) => {
  expect((await headersOf({ TRACEPARENT: text }, '-v')).parent).toBe(text)
})

test.each([
  ['version ff', `ff-${trace}-b7ad6b7169203331-01`],
  ['more fields in version 00', `${parent}-00`],
  ['more characters in a later version', `01-${trace}-b7ad6b7169203331-01x`],
  ['a trace id of zeros', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`],
  ['a parent id of zeros', `00-${trace}-${'0'.repeat(16)}-01`],
  ['capitals', parent.toUpperCase()],
  ['blanks', ` ${parent}`],
  ['a line break', `${parent}\r\nX-Evil: 1`],
  ['a line break at the end', `${parent}\n`],
  ['another form', 'yes'],
])('TRACEPARENT with %s is omitted, and -v says so', async (_, text) => {
  const verbose = await headersOf({ TRACEPARENT: text, TRACESTATE: 'a=b' }, '-v')
  expect(verbose).toMatchObject({ parent: undefined, state: undefined })
  expect(verbose.err).toContain('parley: TRACEPARENT is left out: it does not have the form')
  expect((await headersOf({ TRACEPARENT: text })).err).not.toContain('left out')
})

test.each([
  ['one entry is forwarded', 'a=b', true],
  ['empty entries and blanks is forwarded', ' a=b ,, c@d=e f', true],
  ['a control character is left out', 'a=b\u0007', false],
  ['a line break at the end is left out', 'a=b\n', false],
  ['a line break after many commas is left out', `a=b${','.repeat(99)}\nX: 1`, false],
  ['20,000 blanks is left out', ' '.repeat(20_000), false],
  ['letters beyond ASCII is left out', 'a=ü', false],
])('TRACESTATE with %s', async (_, text, isSent) => {
  const { state, err } = await headersOf({ TRACEPARENT: parent, TRACESTATE: text }, '-v')
  expect(state).toBe(isSent ? text : undefined)
  expect(err.includes('TRACESTATE is left out')).toBe(!isSent)
})

test('-H traceparent replaces TRACEPARENT and TRACESTATE', async () => {
  const env = { TRACEPARENT: parent, TRACESTATE: 'a=b' }
  const own = parent.replace('b7', 'c8')
  const ended = await run(['chat', 'hi', '-H', `TraceParent: ${own}`], { env })
  const { headers = {} } = ended.requests[0] ?? {}
  expect(headers).toMatchObject({ TraceParent: own })
  expect(Object.keys(headers)).not.toContain('traceparent')
  expect(headers.tracestate).toBeUndefined()
  const state = await run(['chat', 'hi', '-H', 'tracestate: c=d'], { env })
  expect(state.requests[0]?.headers).toMatchObject({ traceparent: parent, tracestate: 'c=d' })
})
