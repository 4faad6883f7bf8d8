import { afterAll, expect, test } from 'vitest'
import { createConnections } from '../../src/http/connections.ts'
import { createHttpExchange } from '../../src/http/exchange.ts'
import { realTimers } from '../../src/timers.ts'
import { serve } from '../harness/server.ts'

const request = (url: string, { signal }: AbortController) => ({ method: 'GET', url, headers: {}, signal })

const asked = new AbortController()
const server = await serve(() => asked.abort())
afterAll(() => server.close())

test('a request that is given up closes its connection, and is not to be sent again', async () => {
  const open = new Set<() => void>()
  const exchange = createHttpExchange({
    connections: createConnections({ timeout: 0, ca: undefined, findProxy: undefined }),
    timeout: 0,
    deadline: Infinity,
    open,
    timers: realTimers,
  })
  await expect(exchange(request(server.url, asked))).rejects.toMatchObject({
    kind: 'unknown',
    details: { isPermanent: true },
  })
  await expect(exchange(request(server.url, asked))).rejects.toMatchObject({ kind: 'not-sent' })
  expect(open.size).toBe(0)
  expect(server.requests).toHaveLength(1)
})
