import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createEmulator } from '../../src/emulator/emulator.ts'
import { readRecord } from '../../src/emulator/sessions/replay.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { run, temporaryFolder } from '../harness/run.ts'

type Event = Record<string, unknown> & { type: string }

/**
 * Emulates a service with unusual behavior. Lists are bare arrays and show each event one request late. The
 * receipt is empty. The stream starts with the whole history, deltas and comments. Idle events have unusual
 * stop reasons. The status "running" is listed before the message that caused it.
 */
function createService(): Exchange {
  const events: Event[] = []
  const readers = new Set<(text: string) => void>()
  let listed = 0
  const frame = (event: object) => `event: message\ndata: ${JSON.stringify(event)}\n\n`
  const show = (type: string, fields: object = {}) => {
    const id = `sevt_${events.length + 1}`
    const event = { id, type, processed_at: `2026-11-22T10:00:${10 + events.length}Z`, ...fields }
    const pieces =
      type === 'agent.message'
        ? [
            { type: 'event_start', event: { type, id } },
            { type: 'event_delta', event_id: id },
          ].map(frame)
        : [': keepalive\n\n']
    events.push(event)
    for (const read of readers) for (const text of [...pieces, frame(event)]) read(text)
  }

  function take(sent: Event): void {
    if (sent.type === 'user.message') show('session.status_running')
    show(sent.type, { ...sent, session_thread_id: null })
    if (sent.type === 'user.message') {
      show('agent.thinking')
      show('agent.tool_use', {
        id: 'toolu_1',
        name: 'bash',
        input: { command: 'ls' },
        evaluated_permission: 'ask',
      })
      show('session.status_idle', { stop_reason: { event_ids: ['toolu_1'] } })
    } else if (sent.type === 'user.tool_confirmation') {
      show('agent.tool_result', {
        tool_use_id: 'toolu_1',
        content: `${sent.result}`,
        is_error: sent.result === 'deny',
      })
      show('agent.custom_tool_use', { id: 'toolu_2', name: 'deploy', input: { to: 'here' } })
      show('session.status_idle', { stop_reason: { type: 'requires_action', event_ids: ['toolu_2'] } })
    } else {
      show('span.model_request_end', { model_usage: { input_tokens: 3, output_tokens: 4 } })
      show('agent.message', { content: 'It is done.' })
      show('session.status_idle', { stop_reason: 'end_turn' })
    }
  }

  async function* stream(): AsyncGenerator<Uint8Array> {
    const waiting = [': connected\n\n', ...events.map(frame)]
    let wake = () => {}
    readers.add((text) => {
      waiting.push(text)
      wake()
    })
    for (;;) {
      while (waiting.length > 0) yield Buffer.from(waiting.shift() ?? '')
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  return async (request, onSent) => {
    onSent?.()
    const isStream = request.url.includes('/stream')
    const isPost = request.method === 'POST'
    if (isPost) for (const event of JSON.parse(Buffer.from(request.body ?? []).toString()).events) take(event)
    const list = JSON.stringify(events.slice(0, listed))
    if (!isPost) listed = events.length
    return {
      status: isPost ? 202 : 200,
      statusText: '',
      headers: { 'content-type': isStream ? 'text/event-stream' : 'application/json' },
      body: isStream
        ? stream()
        : (async function* () {
            if (!isPost) yield Buffer.from(request.url.includes('/events') ? list : '{}')
          })(),
      close() {},
    }
  }
}

/** Creates a folder with two policies: one allows everything, the other denies bash. */
function createFolder(): string {
  const cwd = temporaryFolder()
  const write = (name: string, policy: object) => writeFileSync(join(cwd, name), JSON.stringify(policy))
  write('allow.json', { rules: [{ tool: '*', decision: 'allow' }] })
  write('strict.json', { rules: [{ tool: 'bash', decision: 'deny' }] })
  return cwd
}

const task = ['events', 'run', 'Do it', '-s', 's1', '--no-stdin', '--tool', 'deploy=cat', '--policy']

const linesOf = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

async function record(command: 'list' | 'follow') {
  const cwd = createFolder()
  const exchange = createService()
  const ended = await run([...task, 'allow.json', '--audit', 'first.ndjson'], { cwd, exchange })
  const how = command === 'list' ? ['list'] : ['follow', '--history']
  await run(['events', 'list', '-s', 's1'], { cwd, exchange })
  const { out } = await run(['events', ...how, '-s', 's1', '--raw'], { cwd, exchange })
  const played = createEmulator({ sessions: { record: readRecord(out, 'session.ndjson') } })
  return { cwd, ended, exchange: played, out }
}

describe.each(['list', 'follow'] as const)(
  'serve --session replays a session that events %s --raw recorded from a service (needs sh)',
  (command) => {
    test('a replay with the same policy has the same decisions, exit code and answer', async () => {
      const { cwd, ended, exchange } = await record(command)
      expect(ended).toMatchObject({ code: 0 })
      const again = await run([...task, 'allow.json', '--audit', 'second.ndjson'], { cwd, exchange })
      expect(again.code, again.err).toBe(0)
      expect(again.out).toBe(ended.out)
      const decisions = ['first.ndjson', 'second.ndjson'].map((name) =>
        linesOf(readFileSync(join(cwd, name), 'utf8')).flatMap(({ event, toolUse, decision }) =>
          event === 'decision' ? [[toolUse, decision]] : [],
        ),
      )
      expect(decisions[0]).toEqual([
        ['toolu_1', 'allow'],
        ['toolu_2', 'allow'],
      ])
      expect(decisions[1]).toEqual(decisions[0])
      const answer = await run(['events', 'run', '-s', 's1', '--no-stdin', '--last'], { cwd, exchange })
      expect(answer).toMatchObject({ code: 0, out: 'It is done.\n' })
    })

    test('a replay with a stricter policy fails and names the recorded event', async () => {
      const { cwd, exchange } = await record(command)
      const strict = await run([...task, 'strict.json'], { cwd, exchange })
      expect(strict.code).toBe(4)
      expect(strict.err).toContain('409')
      expect(strict.err).toMatch(
        /expected user\.tool_confirmation toolu_1 allow, event \d+ of 13 recorded events/,
      )
    })

    test('a person can answer the tool uses of a replayed session by separate commands', async () => {
      const { cwd, exchange } = await record(command)
      const world = { cwd, exchange, env: { PARLEY_SESSION: 's1' } }
      const runEvents = async (...argv: string[]) => (await run(['events', ...argv, '--follow'], world)).code
      expect(await runEvents('send', 'Do it')).toBe(12)
      expect(await runEvents('confirm', 'toolu_1', '--allow')).toBe(12)
      expect(await runEvents('send', '--custom-tool-result', 'toolu_2=done')).toBe(0)
      const { out } = await run(['events', 'run', '--no-stdin', '--last'], world)
      expect(out).toBe('It is done.\n')
    })
  },
)
