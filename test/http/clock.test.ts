import { expect, test } from 'vitest'
import { createClock } from '../harness/clock.ts'
import { binary, execute } from '../harness/process.ts'
import { answering, run } from '../harness/run.ts'
import { serve } from '../harness/server.ts'

/** Makes the wall clock run backwards. */
const backwards = 'const read = Date.now; const start = read(); Date.now = () => 2 * start - read()'
const program = [process.execPath, '--import', `data:text/javascript,${backwards}`, binary]

const refusal = 'HTTP/1.1 429 No\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\n{}'
const answer = '{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}'
const answered = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${answer.length}\r\n\r\n${answer}`

test('a wall clock that runs backwards extends neither the pause of a batch nor its deadline', async () => {
  const server = await serve((socket, _, count) => {
    if (count === 1) socket.write(refusal)
    // The second line gets no answer.
    if (count === 2) socket.write(answered)
  })
  const env = { PARLEY_BASE_URL: server.url }
  const argv = ['chat', '-m', 'm', '--batch', '-', '--concurrency', '1', '--deadline', '3']
  const { code, out } = await execute(argv, { program, env, stdin: '"one"\n"two"\n' })
  await server.close()
  expect(code).toBe(15)
  expect(out.match(/"ok":true/g)).toHaveLength(1)
  expect(server.requests).toHaveLength(3)
})

test('a wall clock that is set back does not extend the deadline of a call', async () => {
  let reads = 0
  const clock = createClock()
  const timers = { ...clock, wallTime: () => clock.wallTime() - 3_600_000 * reads++ }
  const start = timers.now()
  const exchange = answering('{}', { status: 503, headers: { 'retry-after': '2' } })
  const argv = ['chat', 'x', '--retries', '100', '--deadline', '7', '--errors', 'json']
  const { code, err } = await run(argv, { timers, exchange })
  expect(code).toBe(6)
  expect(JSON.parse(err).error).toMatchObject({ deadline: true })
  expect(timers.now() - start).toBeLessThan(7000)
})

test('parley compares a Retry-After date with the wall clock', async () => {
  const clock = createClock()
  const timers = { ...clock, wallTime: () => Date.UTC(2020, 0, 1) }
  const start = timers.now()
  const retryAfter = new Date(timers.wallTime() + 20_000).toUTCString()
  const exchange = answering('{}', { status: 503, headers: { 'retry-after': retryAfter } })
  await run(['chat', 'x', '--retries', '1'], { timers, exchange })
  expect(timers.now() - start).toBe(20_000)
})
