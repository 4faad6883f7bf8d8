import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { CliError } from '../../../src/errors.ts'
import { realTimers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { createResponse } from '../../harness/responses.ts'
import { answering, message, run, temporaryFolder } from '../../harness/run.ts'

function createAnswerSchema() {
  const cwd = temporaryFolder({ 's.json': '{"type":"object"}' })
  return cwd
}

const paid = message('no JSON', { usage: { input_tokens: 60, output_tokens: 40 } })

const cut = new CliError('response', 'the answer broke off', { isCutOff: true })

/** Answers the first request with `paid`, and later requests by `next`. */
function answeringOnce(next: Exchange): Exchange {
  let count = 0
  return (...call) => (count++ === 0 ? answering(paid)(...call) : next(...call))
}

const argv = [
  'chat',
  'x',
  '--schema',
  's.json',
  '--schema-retries',
  '1',
  '--retries',
  '0',
  '--errors',
  'json',
]

describe('chat saves an answer that does not match the schema if the next request fails', () => {
  const unreachable: Exchange = async () => {
    throw new CliError('not-sent', 'the connection was refused', { isPermanent: true })
  }
  const unanswered: Exchange = async (_, onSent) => {
    onSent?.()
    throw new CliError('unknown', 'the connection was reset')
  }
  const broken: Exchange = async () => {
    const body = (async function* () {
      yield Buffer.from(
        'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"half"}}\n\n',
      )
      throw cut
    })()
    return { ...createResponse(200, ''), headers: { 'content-type': 'text/event-stream' }, body }
  }

  test.each<[string, Exchange, object, string[]]>([
    ['cannot connect', unreachable, { exit: 8, sent: 'yes', safeToRetry: false }, ['no JSON']],
    ['gets no answer', unanswered, { exit: 10, sent: 'unknown', safeToRetry: false }, ['no JSON']],
    [
      'is refused',
      async () => createResponse(429, '{}'),
      { exit: 6, sent: 'yes', safeToRetry: false },
      ['no JSON'],
    ],
    [
      'gets an answer without text',
      async () => createResponse(200, message(' ')),
      { exit: 8, sent: 'yes', attempts: 2 },
      ['no JSON'],
    ],
    ['gets an answer that is cut off', broken, { exit: 8, sent: 'yes', attempts: 2 }, ['half', 'no JSON']],
  ])(
    'chat --schema-retries saves the earlier answer if the next request %s',
    async (_, next, known, saved) => {
      const cwd = createAnswerSchema()
      const exchange = answeringOnce(next)
      const { out, err } = await run(argv, { cwd, exchange, timers: realTimers, env: { TMPDIR: cwd } })
      const { error } = JSON.parse(err.trim().split('\n').at(-1) ?? '')
      expect([out, error]).toEqual(['', expect.objectContaining(known)])
      expect([error.kept].flat().map((name) => readFileSync(name, 'utf8'))).toEqual(saved)
      for (const name of [error.kept].flat()) expect(error.message).toContain(`is saved as ${name}`)
    },
  )
})
