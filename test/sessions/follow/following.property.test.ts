import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Context } from '../../../src/context.ts'
import { Deadline } from '../../../src/deadline.ts'
import type { Caller } from '../../../src/http/call.ts'
import { openFollower } from '../../../src/sessions/following/follower.ts'
import { createSentEvents, readEventsOfBody } from '../../../src/sessions/sending/receipt.ts'
import type { Timers } from '../../../src/timers.ts'
import { type Exchange, readBody } from '../../../src/wire/exchange.ts'
import { createClock } from '../../harness/clock.ts'
import { scaleRuns } from '../../harness/property-runs.ts'
import { run } from '../../harness/run.ts'
import { afterSent, findAnswer, findMistakes, fromNow, readIds } from './judge.ts'
import { type Limits, sending, sendingTwice, taskText, working } from './session-scripts.ts'
import {
  createSessionService,
  type Event,
  receiptId,
  type SessionService,
  sentId,
} from './session-service.ts'

const runs = Number(process.env.FOLLOW_RUNS ?? scaleRuns(50).numRuns)

const plain: Limits = { lag: 0, late: 0, mute: false, keepsAlive: false }
const worlds: [name: string, limits: Limits][] = [
  ['streams replay, repeat and are cut', plain],
  ['the list lags', { ...plain, lag: 3 }],
  ['the first list omits older events', { ...plain, late: 3 }],
  ['streams omit the events of users, and comments never end', { ...plain, mute: true, keepsAlive: true }],
  ['all of this happens at once', { lag: 3, late: 3, mute: true, keepsAlive: true }],
]

/** Follows by the list alone, to show that the list determines the expected output. */
async function followByList(exchange: Exchange, timers: Timers, isSent: boolean): Promise<string[]> {
  const url = 'https://agents.test/v1/sessions/s/events'
  const get = async (query: string) =>
    JSON.parse(
      Buffer.from(
        await readBody((await exchange({ method: 'GET', url: url + query, headers: {} })).body),
      ).toString(),
    )

  async function list(): Promise<Event[]> {
    const all: Event[] = []
    let query = ''
    do {
      const page = await get(query)
      if (Array.isArray(page)) return page
      all.push(...page.data)
      query = page.next_page ? `?page=${page.next_page}` : page.has_more ? `?after_id=${page.last_id}` : ''
    } while (query !== '')
    return all
  }

  const old = new Set((await list()).map(({ id }) => id))
  const content = [{ type: 'text', text: taskText }]
  let sent: string | undefined
  if (isSent) {
    const body = Buffer.from(JSON.stringify({ events: [{ type: 'user.message', content }] }))
    const answer = Buffer.from(
      await readBody((await exchange({ method: 'POST', url, headers: {}, body })).body),
    ).toString()
    const id = JSON.parse(answer || '{}').data?.[0]?.id
    sent = id === receiptId ? undefined : id
  }
  while (true) {
    const all = await list()
    const isSame = (event: Event) =>
      sent === undefined
        ? !old.has(event.id) &&
          event.type === 'user.message' &&
          JSON.stringify(event.content) === JSON.stringify(content)
        : event.id === sent
    const start = isSent ? all.findIndex(isSame) : -1
    const isOver = /^session\.(status_idle|status_terminated|deleted)$/.test(all.at(-1)?.type ?? '')
    const runs = all.filter(({ type }) => type === 'workflow_run.created').length
    const ended = all.filter(({ type }) => type === 'workflow_run.status_ended').length
    if (isOver && runs === ended && !(isSent && start < 0)) {
      return all
        .slice(start + 1)
        .map(({ id }) => id)
        .filter((id) => !old.has(id))
    }
    await timers.wait(1000)
  }
}

const assert = <T>(property: fc.IAsyncProperty<T>) => fc.assert(property, { numRuns: runs })

const world = (service: SessionService, timers: Timers) => ({
  exchange: service.exchange,
  timers,
  env: { PARLEY_SESSION: 'sesn_1' },
})

describe.each(worlds)('service where %s', (_, limits) => {
  test('the list alone determines the output that these tests expect', async () => {
    const property = fc.asyncProperty(fc.oneof(sending(limits), working(limits)), async (scenario) => {
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const printed = await followByList(service.exchange, clock, scenario.isSent)
      const expected = scenario.isSent ? afterSent(scenario) : fromNow(scenario, service, false)
      expect(findMistakes(printed, expected, service, scenario.lag)).toEqual([])
    })
    await assert(property)
  })

  test('events send --follow prints every event after the sent one once, and ends at the next idle event', async () => {
    const property = fc.asyncProperty(sending(limits), fc.boolean(), async (scenario, isRaw) => {
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const argv = ['events', 'send', taskText, '--follow', ...(isRaw ? ['--raw'] : [])]
      const { code, out, err } = await run(argv, world(service, clock))
      const printed = readIds(out, isRaw, service.ledger)
      expect(
        {
          posts: service.posts,
          code,
          wrong: findMistakes(printed, afterSent(scenario), service, scenario.lag),
        },
        err,
      ).toEqual({ posts: 1, code: scenario.code, wrong: [] })
    })
    await assert(property)
  })

  test('events follow prints every event since its start once, and with --history all events', async () => {
    const property = fc.asyncProperty(
      working(limits),
      fc.boolean(),
      fc.boolean(),
      async (scenario, isRaw, hasHistory) => {
        const clock = createClock()
        const service = createSessionService(scenario, clock)
        const argv = ['events', 'follow', ...(isRaw ? ['--raw'] : []), ...(hasHistory ? ['--history'] : [])]
        const { code, out, err } = await run(argv, world(service, clock))
        const printed = readIds(out, isRaw, service.ledger)
        const expected = fromNow(scenario, service, hasHistory)
        expect(
          { posts: service.posts, code, wrong: findMistakes(printed, expected, service, scenario.lag) },
          err,
        ).toEqual({
          posts: 0,
          code: scenario.code,
          wrong: [],
        })
      },
    )
    await assert(property)
  })

  test('events run --last prints the answer of the followed turn, and of no other', async () => {
    const property = fc.asyncProperty(fc.oneof(sending(limits), working(limits)), async (scenario) => {
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const argv = ['events', 'run', '--last', ...(scenario.isSent ? [taskText] : [])]
      const { code, out, err } = await run(argv, world(service, clock))
      const answer = scenario.code === 0 ? (findAnswer(scenario) ?? '') : ''
      expect({ posts: service.posts, code, out: out.trim() }, err).toEqual({
        posts: scenario.isSent ? 1 : 0,
        code: scenario.code === 0 && answer === '' ? 8 : scenario.code,
        out: answer,
      })
    })
    await assert(property)
  })

  test('events send --follow to an idle session prints the next turn to its answer', async () => {
    const property = fc.asyncProperty(sendingTwice(limits), async (scenario) => {
      const clock = createClock()
      const service = createSessionService(scenario, clock)
      const follower = await openFollower({
        context: {
          messages: { note() {} },
          host: { timers: clock, stderr: { isTerminal: true } },
        } as unknown as Context,
        caller: createCaller(service),
        parts: { params: { session: 's' }, headers: {}, inspectCommand: '', deadline: new Deadline(clock) },
      })
      const answers: (string | undefined)[] = []
      for (const text of [taskText, 'and now']) {
        const body = Buffer.from(
          JSON.stringify({ events: [{ type: 'user.message', content: [{ type: 'text', text }] }] }),
        )
        const { data = [] } = JSON.parse((await exchangeText(service, 'POST', '', body)) || '{}')
        const shown: string[] = []
        for await (const items of follower.readNewEvents(createSentEvents(readEventsOfBody(body), data)))
          shown.push(...items.map(({ event }) => event.id ?? ''))
        answers.push(follower.task.answer?.id)
        expect(shown.filter((id, index) => shown.indexOf(id) !== index)).toEqual([])
      }
      follower.close()
      const next = { ...scenario, turn: scenario.nextTurn ?? [] }
      expect(answers).toEqual([findAnswer(scenario), findAnswer(next)])
    })
    await assert(property)
  })
})

const url = 'https://agents.test/v1/sessions/s/events'

async function exchangeText(
  { exchange }: SessionService,
  method: string,
  path: string,
  body?: Uint8Array,
): Promise<string> {
  return Buffer.from(
    await readBody((await exchange({ method, url: url + path, headers: {}, body })).body),
  ).toString()
}

/** Reads from a session without a network. */
const createCaller = ({ exchange }: SessionService) =>
  ({
    call: async (_, { query }, read) => {
      const response = await exchange({
        method: 'GET',
        url: `${url}${query ? `?${query}` : ''}`,
        headers: {},
      })
      return read({ ...response, attempts: 1, accept() {}, fail: (error) => error })
    },
    open: async () => ({
      ...(await exchange({ method: 'GET', url: `${url}/stream`, headers: {} })),
      attempts: 1,
      accept() {},
      finish() {},
      fail: (error: unknown) => error,
    }),
  }) as Pick<Caller, 'call' | 'open'> as Caller

test('events send --interrupt --follow ends if nothing follows the interrupt', async () => {
  const resting = sending(plain).filter(({ history }) => /idle$|interrupt$/.test(history.at(-1)?.type ?? ''))
  const property = fc.asyncProperty(resting, fc.boolean(), async (scenario, isRaw) => {
    const clock = createClock()
    const start = clock.now()
    const service = createSessionService({ ...scenario, runsFirst: false, turn: [] }, clock)
    const argv = ['events', 'send', '--interrupt', '--follow', ...(isRaw ? ['--raw'] : [])]
    const { code, out, err } = await run(argv, world(service, clock))
    const printed = readIds(out, isRaw, service.ledger).filter((id) => id !== sentId)
    expect({ posts: service.posts, code, printed }, err).toEqual({ posts: 1, code: 0, printed: [] })
    expect(clock.now() - start, 'milliseconds').toBeLessThan(300_000)
  })
  await assert(property)
})

test('events list prints the requested events although the service ignores the query', async () => {
  const wish = fc.record({
    type: fc.option(fc.constantFrom('agent.message', 'user.message', 'none.such'), { nil: undefined }),
    limit: fc.option(fc.integer({ min: 1, max: 12 }), { nil: undefined }),
    isRaw: fc.boolean(),
  })
  const property = fc.asyncProperty(sending(plain), wish, async (scenario, { type, limit, isRaw }) => {
    const clock = createClock()
    const service = createSessionService(scenario, clock)
    const argv = ['events', 'list', ...(isRaw ? ['--raw'] : ['--ids'])]
    if (type) argv.push('--type', type)
    if (limit) argv.push('--limit', String(limit))
    const { code, out, err } = await run(argv, world(service, clock))
    const wanted = scenario.history.filter((event) => type === undefined || event.type === type)
    const expected = wanted.slice(limit === undefined ? 0 : -limit).map(({ id }) => id)
    expect({ code, ids: readIds(out, isRaw, service.ledger) }, err).toEqual({ code: 0, ids: expected })
  })
  await assert(property)
})
