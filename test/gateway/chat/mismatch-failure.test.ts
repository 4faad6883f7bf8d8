import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CliError } from '../../../src/errors.ts'
import { realTimers } from '../../../src/timers.ts'
import type { Exchange } from '../../../src/wire/exchange.ts'
import { respond } from '../../harness/responses.ts'
import { message, run, temporaryFolder } from '../../harness/run.ts'

function openSchema() {
  const cwd = temporaryFolder()
  writeFileSync(join(cwd, 's.json'), '{"type":"object"}')
  return cwd
}

const paid = message('no JSON', { usage: { input_tokens: 60, output_tokens: 40 } })

test('chat saves an answer that does not match its schema if the next request cannot connect', async () => {
  const cwd = openSchema()
  let count = 0
  const exchange: Exchange = async () => {
    if (++count > 1) throw new CliError('not-sent', 'the connection was refused', { isPermanent: true })
    return respond(200, paid)
  }
  const argv = ['chat', 'x', '--schema', 's.json', '--schema-retries', '1', '--errors', 'json']
  const { code, out, err } = await run(argv, { cwd, exchange, timers: realTimers, env: { TMPDIR: cwd } })
  const { error } = JSON.parse(err.trim().split('\n').at(-1) ?? '')
  expect([code, out, error.sent, error.safeToRetry], err).toEqual([8, '', 'yes', false])
  expect(readFileSync(error.kept, 'utf8')).toBe('no JSON')
})

test('chat --batch does not repeat a request for its schema after it has reached --max-total-tokens', async () => {
  const cwd = openSchema()
  let count = 0
  const exchange: Exchange = async () => {
    count++
    return respond(200, paid)
  }
  const schema = ['--schema', 's.json', '--schema-retries', '9']
  const argv = ['chat', '--batch', '-', '--concurrency', '1', '--max-total-tokens', '100', ...schema]
  const { out } = await run(argv, { cwd, exchange, timers: realTimers, stdin: '"a"\n"b"\n' })
  expect([count, JSON.parse(out.split('\n')[0] ?? '').error.kind]).toEqual([1, 'response'])
})
