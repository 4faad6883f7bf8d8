import { expect, test } from 'vitest'
import { run } from '../harness/run.ts'

const trace = '0af7651916cd43dd8448eb211c80319c'
const parent = `00-${trace}-b7ad6b7169203331-01`

test('each command that sends a request forwards TRACEPARENT and TRACESTATE', async () => {
  const env = { TRACEPARENT: parent, TRACESTATE: 'congo=t61rcWkgMzE, rojo=00f067aa0ba902b7' }
  for (const line of ['chat hi', 'events list -s sesn_1', 'api gateway /v1/models']) {
    const { requests } = await run(line.split(' '), { env })
    expect(requests[0]?.headers).toMatchObject({ traceparent: parent, tracestate: env.TRACESTATE })
  }
})

test('-H traceparent replaces TRACEPARENT and TRACESTATE', async () => {
  const env = { TRACEPARENT: parent, TRACESTATE: 'a=b' }
  const own = parent.replace('b7', 'c8')
  const { headers = {} } = (await run(['chat', 'hi', '-H', `TraceParent: ${own}`], { env })).requests[0] ?? {}
  expect(headers).toMatchObject({ TraceParent: own })
  expect(Object.keys(headers)).not.toContain('traceparent')
  expect(headers.tracestate).toBeUndefined()
  const state = await run(['chat', 'hi', '-H', 'tracestate: c=d'], { env })
  expect(state.requests[0]?.headers).toMatchObject({ traceparent: parent, tracestate: 'c=d' })
})
