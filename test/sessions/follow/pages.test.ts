import { expect, test } from 'vitest'
import { createSessionService, endTurn, running, says, userSays } from '../../harness/session-service.ts'

const said = (out: string) => out.match(/^(one|two|three)$/gm)
const history = [userSays('go'), running, says('one'), says('two'), says('three'), endTurn]

test.each(['next_page', 'has_more'] as const)(
  'an event on two pages is printed once (pages with %s)',
  async (form) => {
    const { run, requests } = createSessionService({ history, list: { form, pageSize: 2, overlap: 1 } })
    const follow = await run(['events', 'follow', '--history'])
    expect([follow.code, said(follow.out)], follow.err).toEqual([0, ['one', 'two', 'three']])
    expect(requests.filter(({ kind }) => kind === 'list').length).toBeGreaterThan(4)
    const list = await run(['events', 'list', '--ids'])
    expect({ code: list.code, out: list.out }, list.err).toEqual({ code: 0, out: 'e1\ne2\ne3\ne4\ne5\ne6\n' })
  },
)

test('events list does not print event previews', async () => {
  const previews = [
    { id: undefined, type: 'event_start', event: { id: 'e5', type: 'agent.message' } },
    { id: undefined, type: 'event_delta', event_id: 'e5', delta: { type: 'content_delta' } },
  ]
  const { run } = createSessionService({ history: [...previews, says('one'), endTurn] })
  for (const argv of ['list', 'list --raw', 'list --order desc', 'follow --history']) {
    const { code, out } = await run(`events ${argv}`.split(' '))
    expect([code, out]).toEqual([0, expect.stringContaining('one')])
    expect(out).not.toContain('event_')
  }
})

test.each([
  [2000, 'does not limit', []],
  [1000, 'limits', ['held', 'released']],
])("for 1,001 events in pages of %i, parley %s V8's young generation", async (pageSize, _, expected) => {
  const history = [...Array.from({ length: 1000 }, () => says('one')), endTurn]
  const { run } = createSessionService({ history, list: { pageSize } })
  for (const argv of [['list'], ['follow', '--history']]) {
    const calls = new Set<string>()
    const { code } = await run(['events', ...argv], {
      limitYoungGeneration(cleanups) {
        calls.add('held')
        cleanups.add(() => void calls.add('released'))
      },
    })
    expect({ code, calls: [...calls] }).toEqual({ code: 0, calls: expected })
  }
})
