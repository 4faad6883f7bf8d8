import { expect, test } from 'vitest'
import {
  bash,
  createSessionService,
  custom,
  endTurn,
  running,
  says,
  shown,
  waitsFor,
} from '../../harness/session-service.ts'

const audited = ['--audit', 'audit.ndjson', '--report', 'report.json']

test('events run --last exits with 8 if the last list fails, and its resume command prints the answer', async () => {
  // The stream omits the last message, and each list after the task fails until the first run has ended.
  let isAway = true
  const service = createSessionService({
    posts: [{ next: [running, says('half'), shown(says('whole'), { streamed: 'never' }), endTurn] }],
    lists: [{ when: () => isAway && service.posts.length > 0, fault: { status: 503 } }],
  })
  const { code, out, err } = await service.run(['events', 'run', 'go', '--last', ...audited])
  expect({ code, out }).toEqual({ code: 8, out: '' })
  expect(err).toContain(
    'the answer may be incomplete: the list of events could not be read after the session stopped: ',
  )
  const [{ retry, resume }] = service.lines('report.json') as [{ retry: string; resume: string[] }]
  expect(retry).toBe('later')
  isAway = false
  expect(await service.run(resume)).toMatchObject({ code: 0, out: 'whole\n' })
  expect(service.posts).toHaveLength(1)
})

const open = () =>
  createSessionService({
    posts: [
      { type: 'user.message', nth: 1, next: [running, custom('c1'), waitsFor('c1')] },
      { type: 'user.custom_tool_result', next: [running, shown(says('done'), { after: 10_000 }), endTurn] },
      { type: 'user.message', next: [running, says('done too'), endTurn] },
    ],
  })
const line = (tool: string) => [...'events run go --last --tool'.split(' '), `count=${tool}`, ...audited]
const report = ({ lines }: ReturnType<typeof open>) => lines('report.json')[0]?.toolUses

test.each([
  ['fails', 'exit 3'],
  ['prints more than 1 MiB', 'head -c 1100000 /dev/zero'],
])('events run warns even with -q if a --tool command %s (needs sh)', async (_, command) => {
  const service = open()
  const { code, out, err } = await service.run([...line(command), '-q'])
  expect({ code, out }).toEqual({ code: 0, out: 'done\n' })
  expect(err).toContain('the tool use c1 failed (count): ')
  expect(report(service)).toEqual({ allowed: 1, denied: 0, run: 1, failedCommands: 1, open: 0 })
})

test('--fail-on-tool-error makes events run exit with 14 after the answer, also in a rerun, but not after the next task (needs sh)', async () => {
  const service = open()
  const flags = [...line('exit 3'), '--fail-on-tool-error']
  expect((await service.run([...flags, '--deadline', '5s'])).code).toBe(15)
  const { code, out, err } = await service.run(flags)
  expect({ code, out }).toEqual({ code: 14, out: 'done\n' })
  expect(err).toContain('s1 finished, but 1 --tool command failed\n  count c1: failed\n')
  expect(report(service)).toMatchObject({ run: 0, failedCommands: 1 })
  const next = await service.run(flags.map((word) => (word === 'go' ? 'next' : word)))
  expect({ code: next.code, out: next.out }, next.err).toEqual({ code: 0, out: 'done too\n' })
  expect(report(service)).toMatchObject({ failedCommands: 0 })
})

test('if an idle event lists no ids, the report of events run counts unanswered tool uses as open', async () => {
  const silent = { type: 'session.status_idle', stop_reason: { type: 'requires_action' } }
  const service = createSessionService({ posts: [{ next: [running, bash('t1'), silent] }] })
  const { code } = await service.run(['events', 'run', 'go', ...audited])
  expect([code, service.report().toolUses]).toMatchObject([12, { open: 1 }])
})
