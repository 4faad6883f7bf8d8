import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { custom, endTurn, running, says, userSays, waitsFor } from '../../harness/events.ts'
import { readError, readText } from '../../harness/run.ts'
import { createSessionService, type RequestFault, type ScriptEvents } from '../../harness/session-service.ts'

/** Creates a session whose service fails for good once `isDown` is true. */
function createFailingService(fault: RequestFault, isDown: () => boolean, next: ScriptEvents) {
  const rule = { when: isDown, fault }
  return createSessionService({
    history: [userSays('x'), running],
    posts: [{ nth: 1, next }, rule],
    lists: [rule],
    streams: [rule, { cutAfter: next.length + 1 }],
  })
}

const commands: readonly (readonly [
  name: string,
  argv: string[],
  sent: string,
  retry: string,
  resumes: boolean,
])[] = [
  ['follow', ['follow'], 'yes', 'later', false],
  ['run', ['run', 'go'], 'yes', 'never', true],
  ['run', ['run', 'go', '--audit', 'a.jsonl'], 'yes', 'later', true],
  ['run', ['run', '--no-stdin'], 'no', 'later', true],
  ['send', ['send', 'go', '--follow'], 'yes', 'never', false],
]
const faults: readonly RequestFault[] = ['unreachable', 'reset', { status: 502 }]

test.each(
  commands.flatMap(([name, argv, ...expected]) =>
    faults.map((fault) => [name, JSON.stringify(fault), argv, fault, ...expected] as const),
  ),
)('events %s exits with 8 if all fails for 5 min: %s', async (_, __, argv, fault, sent, retry, resumes) => {
  let isDown = false
  const service = createFailingService(fault, () => isDown, [running])
  void service.timers.wait(10_000).then(() => {
    isDown = true
    service.add(running, running)
  })
  const { code, err } = await service.run(['events', ...argv, '--errors', 'json'])
  const error = readError(err)
  expect([code, error.sent, error.retry, Array.isArray(error.resume)]).toEqual([8, sent, retry, resumes])
  expect(error.message).toContain('(parley tried for 5 min)')
  expect(err).not.toContain('nothing was sent')
})

test.each<[string, RequestFault, number]>([
  ['the service is unreachable for good', 'unreachable', 8],
  ['the connections are reset', 'reset', 10],
])('if %s while events run posts a result, it prints notes once and saves it', async (_, fault, exit) => {
  const service: ReturnType<typeof createSessionService> = createFailingService(
    fault,
    () => existsSync(join(service.cwd, 'started')),
    [running, custom('t1'), waitsFor('t1')],
  )
  const tool = ['--tool', 'count=touch started; echo precious']
  const { code, err } = await service.run(['events', 'run', 'go', ...tool])
  const notes = err.split('\n').filter((line) => /trying again|still failing/.test(line))
  expect([code, notes]).toEqual([exit, [...new Set(notes)]])
  const [, path = ''] = /answer with --custom-tool-result t1=@(\S+)/.exec(err) ?? []
  expect(readText(path, '')).toBe('precious\n')
})

test.each<[string, RequestFault, number]>([
  ['events follow', { status: 429, headers: { 'retry-after': '20' } }, 20_000],
  ['events follow', { status: 500 }, 4_000],
  ['events run --no-stdin', 'unreachable', 4_000],
  ['events run --no-stdin', { status: 200, body: '<html>' }, 4_000],
])(
  'while the list has new events and only the stream fails, %s waits between streams: %j',
  async (words, fault, waitMs) => {
    const service = createSessionService({
      history: [userSays('x'), running],
      streams: [
        { nth: 1, cutAfter: 0, events: [] },
        { when: () => service.timers.now() < end, fault },
      ],
    })
    const end = service.timers.now() + 390_000
    void (async () => {
      while (service.timers.now() < end) {
        await service.timers.wait(500)
        service.add(says('on'))
      }
      await service.timers.wait(30_000)
      service.add(endTurn)
    })()
    const { code, out, err } = await service.run(words.split(' '))
    expect([code, out.match(/\ton$|^on$/gm)?.length]).toEqual([0, 780])
    const times = service.requests.flatMap(({ kind, at }) => (kind === 'stream' ? [at] : [])).slice(6)
    const waits = times.flatMap((at, i) => at - (times[i - 1] ?? -Infinity))
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(waitMs)
    const minutes = [1, 2, 3, 4, 5, 6].map((count) => `still failing after ${count} min; trying again`)
    expect(err.match(/still failing.*|; trying again/g)).toEqual(['; trying again', ...minutes])
  },
)
