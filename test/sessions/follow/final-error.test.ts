import { expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { CliError } from '../../../src/errors.ts'
import type { Follower } from '../../../src/sessions/following/follower.ts'
import { SeenEvents } from '../../../src/sessions/following/seen-events.ts'
import { createEventPrinter, followAndPrint } from '../../../src/sessions/following/transcript.ts'
import {
  createSessionService,
  type Event,
  endTurn,
  running,
  says,
  shown,
} from '../../harness/session-service.ts'

const fails = (status: string): Event => ({
  type: 'session.error',
  error: { type: 'api_error', message: 'boom', retry_status: { type: status } },
})
const argv = [
  ['run', ['events', 'run', 'do it', '--last']],
  ['send --follow', ['events', 'send', 'do it', '--follow']],
] as const

test.each(
  argv.flatMap(([name, words]) => ['idle', 'terminated'].map((status) => [name, status, words] as const)),
)('events %s exits with 13 after a final error if the session is %s', async (_, status, words) => {
  const session = () => ({ id: 's1', status })
  const service = createSessionService({ session, posts: [{ next: [running, fails('terminal')] }] })
  const { code, out, err } = await service.run([...words, '--deadline', '10m'])
  expect([code, err]).toEqual([13, expect.stringContaining('boom')])
  expect(out).not.toContain('done')
})

test('events run waits after an error that the service itself retries', async () => {
  const end = shown(says('the answer'), { after: 100_000 })
  const session = () => ({ id: 's1', status: 'idle' })
  const posts = [{ next: [running, fails('retrying'), end, endTurn] }]
  const words = [...argv[0][1], '--deadline', '10m']
  const { code, out } = await createSessionService({ session, posts }).run(words)
  expect([code, out]).toEqual([0, 'the answer\n'])
})

test('if the service fails and then stdout fails, followAndPrint throws the failure of the service', async () => {
  const { state, task } = new SeenEvents()
  const messages = {
    isHeld: true,
    note() {},
    release() {
      messages.isHeld = false
    },
    style: { dim: String },
  }
  const failed: string[] = []
  const write = () => {
    failed.push('stdout')
    return Promise.reject(new CliError('file', 'stdout cannot be written'))
  }
  const context = {
    flags: {},
    host: { stderr: { isTerminal: false }, stdout: { columns: 80 }, timers: { wallTime: () => 0 } },
    messages,
    output: { isTerminal: true, write },
    reportData: { figures: { warnings: {} } },
  } as unknown as Context
  async function* readNewEvents() {
    yield [{ event: { type: 'user.message', content: 'hi' }, text: '{}' }]
    throw new CliError('service', 'the service failed')
  }
  const follower = { state, task, readNewEvents } as unknown as Follower
  const printer = createEventPrinter(context, { isStdoutReserved: false, markdown: false })
  const end = followAndPrint(context, follower, { session: 's1', printer })
  await expect(end).rejects.toThrow('the service failed')
  expect(failed).toEqual(['stdout'])
})
