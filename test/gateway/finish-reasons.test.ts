import { describe, expect, test } from 'vitest'
import { answering, run } from '../harness/run.ts'

const cutAnswer = (finishReason: string) =>
  answering(JSON.stringify({ candidates: [{ content: { parts: [{ text: 'Half' }] }, finishReason }] }))

const blockedPrompt = (blockReason: string) => answering(JSON.stringify({ promptFeedback: { blockReason } }))

const explained: [reason: string, explanation: string][] = [
  ['MALFORMED_FUNCTION_CALL', 'the model wrote a function call that cannot be read'],
  ['MALFORMED_RESPONSE', 'the model wrote an answer that the service cannot read'],
  ['UNEXPECTED_TOOL_CALL', 'the model called a tool that the request does not declare'],
  ['TOO_MANY_TOOL_CALLS', 'the model called too many tools in a row'],
  ['LANGUAGE', 'the service does not support the language'],
  ['IMAGE_RECITATION', 'the image is too similar to an existing one'],
  ['IMAGE_OTHER', 'the service gives no reason'],
]

const blocked: [reason: string, explanation: string][] = [
  ['MODEL_ARMOR', 'a filter blocked the prompt'],
  ['JAILBREAK', 'the prompt was blocked as an attempt to evade the safety rules'],
]

describe('unusual finish reasons', () => {
  test.each(explained)(
    'the finish reason %s prints a warning, or exits with 8 with --fail-on-cut',
    async (reason, explanation) => {
      const warned = await run(['chat', 'x', '-q'], { exchange: cutAnswer(reason) })
      const words = `the answer was stopped: ${reason} (${explanation})\n`
      expect(warned).toMatchObject({ code: 0, out: 'Half\n', err: `parley: ${words}` })
      const failed = await run(['chat', 'x', '--fail-on-cut'], { exchange: cutAnswer(reason) })
      expect(failed).toMatchObject({ code: 8, out: 'Half\n', err: expect.stringContaining(words) })
    },
  )
})

test.each(blocked)(
  'a blocked prompt exits with 8 and explains the reason %s',
  async (reason, explanation) => {
    const { code, out, err } = await run(['chat', 'x'], { exchange: blockedPrompt(reason) })
    expect([code, out]).toEqual([8, ''])
    expect(err).toContain(`the answer was stopped: ${reason} (${explanation}); the answer has no text`)
  },
)

test("the service's explanation of a finish reason replaces parley's", async () => {
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

test.each([
  ['with -v prints', ['-v'], true],
  ['without -v does not print', [], false],
])('chat %s when the model will be retired', async (_, flags, isShown) => {
  const exchange = answering(
    JSON.stringify({
      candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
      modelStatus: { retirementTime: '2027-03-01T00:00:00Z' },
    }),
  )
  const { code, err } = await run(['chat', 'x', ...flags], { exchange })
  expect([code, err.includes('the model will be retired: 2027-03-01T00:00:00Z')]).toEqual([0, isShown])
})
