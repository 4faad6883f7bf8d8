import { expect, test } from 'vitest'
import { createSessionService, endTurn, running, says, userSays } from '../harness/session-service.ts'

const history = [userSays('x'), running, says('one'), says('two'), endTurn]

test.each<[string, string[], string]>([
  ['events list', ['events', 'list', '--ids'], 'e1\ne2\ne3\ne4\ne5\n'],
  ['events run', ['events', 'run', '--last'], 'two\n'],
])('%s requests a cut page of a list again, and prints each event once', async (_, argv, expected) => {
  const cuts = new Set([1, 2])
  const service = createSessionService({
    history,
    list: { pageSize: 3 },
    lists: [1, 2].map((page) => ({ page, fault: 'cut', when: () => cuts.delete(page) })),
  })
  const { code, out } = await service.run([...argv, '--deadline', '60'])
  expect({ code, out, cuts: cuts.size }).toEqual({ code: 0, out: expected, cuts: 0 })
})

test('events list exits with 8 if every response is cut, also after the retries', async () => {
  const service = createSessionService({ history, lists: [{ fault: 'cut' }] })
  const { code, out } = await service.run(['events', 'list', '--retries', '1'])
  expect({ code, out, requests: service.requests.length }).toEqual({ code: 8, out: '', requests: 2 })
})

test('--retries limits the sum of cut lists and other failures', async () => {
  const lists = [
    { nth: 1, fault: 'cut' },
    { nth: 2, fault: { status: 500 } },
  ] as const
  const service = createSessionService({ history, lists })
  const { code } = await service.run(['events', 'list', '--retries', '1'])
  expect({ code, requests: service.requests.length }).toEqual({ code: 7, requests: 2 })
})
