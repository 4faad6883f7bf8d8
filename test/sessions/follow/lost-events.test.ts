import { describe, expect, test } from 'vitest'
import {
  asks,
  createSessionService,
  type Event,
  endTurn,
  running,
  type SessionScript,
  says,
  shown,
} from '../../harness/session-service.ts'

const first: Event = { ...asks('before'), id: 'e1' }
const history = [first, running, says('earlier'), endTurn]
const run = ['events', 'run', 'do it', '--last', '--deadline', '10m']
const gone = /^parley: the events of \S+ are gone: the service no longer lists them$/m

/** Creates a service that restarts after two events of a turn. From then on, `isLost` decides whether its lists lose events. */
function restarting(lost: readonly Event[], more: SessionScript = {}, isLost = () => true) {
  let isRestarted = false
  const act = () => {
    isRestarted = true
  }
  return createSessionService({
    history,
    posts: [{ type: 'user.message', next: [running, says('working')] }],
    streams: [
      { nth: 1, cutAfter: 2 },
      { nth: 2, act },
    ],
    lists: [{ when: () => isRestarted && isLost(), events: lost }],
    ...more,
  })
}

describe('list that loses events', () => {
  test.each<[string, Event[], SessionScript]>([
    ['all events', [], {}],
    ['all events, which have no ids', [], { hasNoIds: true }],
    ['its last events', [first], {}],
    ['its last events and ignores the order', [first], { list: { ignores: ['order'] } }],
  ])('events run exits with 13 if the list has lost %s for 30 s', async (_, lost, more) => {
    const service = restarting(lost, more)
    const { code, err } = await service.run([...run, '--errors', 'json', '--report', 'r'])
    const { error } = JSON.parse(err.trim().split('\n').at(-1) ?? '')
    expect(code).toBe(13)
    expect(`parley: ${error.message}`).toMatch(gone)
    expect(error).toMatchObject({ kind: 'stuck', sent: 'yes', retry: 'never' })
    expect(service.posts).toHaveLength(1)
  })

  test.each([
    ['events follow', []],
    ['events follow --stay', ['--stay']],
  ])('%s exits with 13', async (_, flags) => {
    const open = [...history, asks('more'), running]
    const service = restarting([], {
      history: flags.length > 0 ? history : open,
      streams: [
        { nth: 1, events: [says('a'), says('b')], cutAfter: 2 },
        { nth: 2, act: () => {} },
      ],
      lists: [{ nth: 1 }, { events: [] }],
    })
    const { code, err } = await service.run(['events', 'follow', ...flags, '--deadline', '10m'])
    expect(code).toBe(13)
    expect(err).toMatch(gone)
  })

  test('events run continues if the list has its events again within 30 s', async () => {
    let count = 0
    const next = [running, says('working'), shown(says('Done'), { after: 40_000 }), endTurn]
    const service = restarting([], { posts: [{ type: 'user.message', next }] }, () => count++ < 5)
    expect(await service.run(run)).toMatchObject({ code: 0, out: 'Done\n' })
    expect(count).toBeGreaterThan(5)
  })
})

describe('session whose events no list has shown', () => {
  const fresh = (status: string) =>
    restarting([], { history: [], lists: [{ events: [] }], session: () => ({ status }) })

  test('events run exits with 13 if the session resource is idle', async () => {
    const { code, err } = await fresh('idle').run(run)
    expect(code).toBe(13)
    expect(err).toMatch(gone)
  })

  test('events run waits if the session resource is running', async () => {
    expect((await fresh('running').run(run)).code).toBe(15)
  })
})
