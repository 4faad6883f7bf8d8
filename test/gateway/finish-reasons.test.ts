import { expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'

const cutAnswer = (finishReason: string) =>
  answering(JSON.stringify({ candidates: [{ content: { parts: [{ text: 'Half' }] }, finishReason }] }))

test("the warning about a finish reason has the service's explanation", async () => {
  const { err } = await run(['chat', 'x'], {
    exchange: answering(
      JSON.stringify({
        candidates: [
          {
            content: { parts: [{ text: 'Half' }] },
            finishReason: 'MALFORMED_RESPONSE',
            finishMessage: 'Not JSON.',
          },
        ],
      }),
    ),
  })
  expect(err).toBe('parley: the answer was stopped: MALFORMED_RESPONSE: Not JSON.\n')
})

test('chat prints an unknown finish reason unchanged, also the name of an inherited property', async () => {
  const { err } = await run(['chat', 'x'], { exchange: cutAnswer('constructor') })
  expect(err).toBe('parley: the answer was stopped: constructor\n')
})
