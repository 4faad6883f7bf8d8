import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CliError } from '../../../src/errors.ts'
import { realTimers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { textDelta } from '../../faults/answers.ts'
import { answerInOrder, breaking, unanswered, unreachable } from '../../harness/responses.ts'
import { answering, message, readError, run, temporaryFolder } from '../../harness/run.ts'

const paid = message('no JSON', { usage: { input_tokens: 60, output_tokens: 40 } })

const cut = new CliError('response', 'the answer broke off', { isCutOff: true })

const argv = 'chat x --schema s.json --schema-retries 1 --retries 0 --errors json'.split(' ')

const brokenStream = breaking(textDelta('half'), () => cut, 'text/event-stream')

test.each<[string, Exchange, object, string[]]>([
  ['cannot connect', unreachable, { exit: 8, sent: 'yes', safeToRetry: false }, ['no JSON']],
  ['gets no answer', unanswered, { exit: 10, sent: 'unknown', safeToRetry: false }, ['no JSON']],
  ['is refused', answering('{}', { status: 429 }), { exit: 6, sent: 'yes', safeToRetry: false }, ['no JSON']],
  ['gets no text', answering(message(' ')), { exit: 8, sent: 'yes', attempts: 2 }, ['no JSON']],
  ['gets a cut answer', brokenStream, { exit: 8, sent: 'yes', attempts: 2 }, ['half', 'no JSON']],
])('chat --schema-retries saves the earlier answer if the next request %s', async (_, next, known, saved) => {
  const cwd = temporaryFolder({ 's.json': '{"type":"object"}' })
  const exchange = answerInOrder(paid, next)
  const { out, err } = await run(argv, { cwd, exchange, timers: realTimers, env: { TMPDIR: cwd } })
  const error = readError(err)
  expect([out, error]).toEqual(['', expect.objectContaining(known)])
  expect([error.kept].flat().map((name) => readFileSync(name, 'utf8'))).toEqual(saved)
  for (const name of [error.kept].flat()) expect(error.message).toContain(`is saved as ${name}`)
})
