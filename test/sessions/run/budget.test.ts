import { describe, expect, test } from 'vitest'
import { Budget, hasLimits, type LimitFlags } from '../../../src/sessions/running/budget.ts'
import { readUsage } from '../../../src/wire/sessions/usage.ts'

type Value = Record<string, unknown>
const usage = (input: number, output: number, cents?: unknown, more: Value = {}) => ({
  input_tokens: input,
  output_tokens: output,
  ...(cents === undefined ? {} : { list_cost: { amount: cents, currency: 'USD' } }),
  ...more,
})
const told = (input: number, output: number, cents?: unknown, more?: Value) => ({
  type: 'session.usage',
  usage: usage(input, output, cents, more),
})
const request = (input: number, output: number, cents?: unknown) => ({
  type: 'span.model_request_end',
  model_usage: usage(input, output, cents),
})
const task = { type: 'user.message' }
const says = { type: 'agent.message' }
const usd = (amount: number | bigint) => ({ amount: BigInt(amount), currency: 'USD' })

interface Row {
  past?: object[]
  now: object[]
  run: object
  session?: object
}

const rows: Record<string, Row> = {
  'a new session: all of it is the run': {
    now: [says, told(10, 5, '187')],
    run: { tokens: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }, cost: usd(187) },
    session: { tokens: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }, cost: usd(187) },
  },
  'an older session: the difference to the last usage before the task': {
    past: [task, says, told(10, 5, '100'), task, says, told(30, 9, '150')],
    now: [says, told(40, 10, '187')],
    run: { tokens: { inputTokens: 10, outputTokens: 1, totalTokens: 11 }, cost: usd(37) },
    session: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(187) },
  },
  'an older session that told nothing: unknown, although its requests are told': {
    past: [task, says],
    now: [request(3, 4), told(40, 10, '187')],
    run: {},
    session: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(187) },
  },
  'a count that cannot be read makes the sums unknown that it belongs to': {
    now: [says, { type: 'session.usage', usage: { input_tokens: 10, output_tokens: '5' } }],
    run: { tokens: { inputTokens: 10, outputTokens: null, totalTokens: null } },
    session: { tokens: { inputTokens: 10, outputTokens: null, totalTokens: null } },
  },
  'a count of one request that cannot be read makes the sum unknown': {
    now: [
      request(1, 2),
      { type: 'span.model_request_end', model_usage: { input_tokens: 3, output_tokens: -1 } },
      request(5, 6),
    ],
    run: { tokens: { inputTokens: 9, outputTokens: null, totalTokens: null } },
  },
  'a cache count of which a part cannot be read is unknown': {
    now: [told(10, 5, undefined, { cache_creation: { a: 1, b: '2' } })],
    run: { tokens: { inputTokens: 10, outputTokens: 5, cacheCreationInputTokens: null, totalTokens: null } },
  },
  'what can be read again counts again': {
    now: [{ type: 'session.usage', usage: { input_tokens: 10, output_tokens: '5' } }, told(20, 6)],
    run: { tokens: { inputTokens: 20, outputTokens: 6, totalTokens: 26 } },
  },
  'a session that has not worked yet is new': {
    past: [
      task,
      { type: 'x.agent.message' },
      { type: 'x.session.status_running' },
      { type: 'session.status_running_soon' },
    ],
    now: [told(40, 10)],
    run: { tokens: { totalTokens: 50 } },
  },
  'one that began to work is not': {
    past: [task, { type: 'session.status_running' }],
    now: [told(40, 10)],
    run: {},
  },
  'another event that has a usage tells nothing': {
    now: [{ ...says, usage: usage(9, 9), model_usage: usage(9, 9) }],
    run: {},
  },
  'a cost alone is told': {
    now: [{ type: 'session.usage', usage: { list_cost: { amount: '7', currency: 'USD' } } }],
    run: { tokens: undefined, cost: usd(7) },
  },
  'a part that is not told any more is unknown': {
    past: [task, told(7, 9, '5')],
    now: [{ type: 'session.usage', usage: { input_tokens: 9 } }],
    run: { tokens: { inputTokens: 2, totalTokens: 2 }, cost: undefined },
  },
  'the costs of requests add up': {
    now: [request(1, 1, '5'), request(1, 1, '6')],
    run: { tokens: { totalTokens: 4 }, cost: usd(11) },
  },
  'the cost of one request is not that of two': {
    now: [request(1, 1, '5'), request(1, 1)],
    run: { tokens: { totalTokens: 4 }, cost: undefined },
  },
  'nor is the cost of the second one': {
    now: [request(1, 1), request(1, 1, '5')],
    run: { tokens: { totalTokens: 4 }, cost: undefined },
  },
  'a part of which nothing more was used is nothing': {
    past: [task, told(10, 5, '7')],
    now: [told(10, 9, '7')],
    run: { tokens: { inputTokens: 0, outputTokens: 4, totalTokens: 4 }, cost: usd(0) },
  },
  'a part that is less than before is unknown': {
    past: [task, told(10, 5, '7')],
    now: [told(5, 9, '6')],
    run: { tokens: { outputTokens: 4, totalTokens: 4 }, cost: undefined },
    session: { tokens: { inputTokens: 5, outputTokens: 9, totalTokens: 14 }, cost: usd(6) },
  },
  'a cost that was not told before is not that of the run': {
    past: [task, told(10, 5)],
    now: [told(11, 6, '7')],
    run: { tokens: { totalTokens: 2 }, cost: undefined },
  },
  'a usage of as many tokens tells its cost': {
    now: [told(40, 10, '187'), told(40, 10, '190')],
    run: { tokens: { totalTokens: 50 }, cost: usd(190) },
  },
  'the usages of requests add up if nothing else is told': {
    past: [task, request(1000, 1000)],
    now: [request(3, 4), says, request(5, 6)],
    run: { tokens: { inputTokens: 8, outputTokens: 10, totalTokens: 18 }, cost: undefined },
    session: {},
  },
  'a request that tells nothing makes the sum unknown': {
    now: [request(3, 4), { type: 'span.model_request_end', is_error: true }, says, request(5, 6)],
    run: {},
  },
  'so does one whose usage is null, before all others': {
    now: [{ type: 'span.model_request_end', model_usage: null }, request(5, 6)],
    run: {},
  },
  'one of the turn before does not': {
    past: [task, { type: 'span.model_request_end' }, says],
    now: [request(5, 6)],
    run: { tokens: { totalTokens: 11 } },
  },
  'nor does one if the whole session is told': {
    now: [{ type: 'span.model_request_end' }, told(10, 5, '187')],
    run: { tokens: { totalTokens: 15 }, cost: usd(187) },
  },
  'once the session is told, requests count no more': {
    now: [request(3, 4), told(40, 10, '1'), request(5, 6)],
    run: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(1) },
  },
  'the cache counts, in either spelling': {
    now: [
      told(1, 2, undefined, {
        cache_read_input_tokens: 100,
        cache_creation: { ephemeral_5m_input_tokens: 20, ephemeral_1h_input_tokens: 3 },
      }),
    ],
    run: {
      tokens: {
        inputTokens: 1,
        outputTokens: 2,
        cacheReadInputTokens: 100,
        cacheCreationInputTokens: 23,
        totalTokens: 126,
      },
    },
  },
  'a part that only one of two usages tells is unknown': {
    past: [task, { type: 'session.usage', usage: { input_tokens: 5 } }],
    now: [told(7, 9)],
    run: { tokens: { inputTokens: 2, totalTokens: 2 }, cost: undefined },
  },
  'half a cent is no amount': { now: [told(1, 2, '0.5')], run: { cost: undefined } },
  'an amount that is a number is not text': { now: [told(1, 2, 187)], run: { cost: undefined } },
  'an amount beyond any number of JavaScript is exact': {
    past: [task, told(1, 1, '90071992547409929007')],
    now: [told(1, 2, '90071992547409929008')],
    run: { cost: usd(1) },
  },
  'a second currency makes the cost unknown, for good': {
    past: [task, told(1, 1, '5')],
    now: [
      { type: 'session.usage', usage: { input_tokens: 2, list_cost: { amount: '9', currency: 'EUR' } } },
      told(3, 3, '12'),
    ],
    run: { tokens: { inputTokens: 2 }, cost: undefined },
    session: { cost: undefined },
  },
  'requests in two currencies have no cost': {
    now: [
      request(1, 1, '5'),
      {
        type: 'span.model_request_end',
        model_usage: { input_tokens: 2, list_cost: { amount: '9', currency: 'EUR' } },
      },
    ],
    run: { cost: undefined },
  },
  'nor does one say anything of the run that is behind what was told before': {
    past: [task, says, told(40, 10, '187')],
    now: [told(30, 10, '150')],
    run: {},
  },
  'a usage that is behind says nothing': {
    now: [told(40, 10, '187'), told(30, 10, '150')],
    run: { tokens: { inputTokens: 40 }, cost: usd(187) },
  },
  'nothing told is nothing known': { now: [says, { type: 'session.usage' }], run: {}, session: {} },
  'what is odd is unknown': {
    now: [
      {
        type: 'session.usage',
        usage: { input_tokens: -1, output_tokens: 1.5, cache_read_input_tokens: '7', list_cost: [] },
      },
    ],
    run: {
      tokens: { inputTokens: null, outputTokens: null, cacheReadInputTokens: null, totalTokens: null },
    },
  },
}

describe('what a run has used', () => {
  test.each(Object.entries(rows))('%s', (_, { past = [], now, run, session }) => {
    const budget = new Budget()
    for (const event of past) budget.add(event as never)
    budget.begin(true)
    for (const event of now) budget.add(event as never)
    const { run: figures } = budget
    expect(figures).toMatchObject(run)
    if (Object.keys(run).length === 0) expect(figures).toEqual({})
    if ('tokens' in run) expect(figures.tokens).toEqual(run.tokens && expect.objectContaining(run.tokens))
    if (session) expect(budget.session).toMatchObject(session)
  })

  test('the service may be asked, before the task and after it', () => {
    const budget = new Budget()
    budget.add(says as never)
    budget.begin(true)
    expect(budget.lacksBase).toBe(true)
    budget.addBase(readUsage(usage(10, 10, '5')))
    expect([budget.lacksBase, budget.isTold]).toEqual([false, false])
    budget.addSession(readUsage(usage(15, 11, '9')))
    expect(budget.run).toMatchObject({ tokens: { totalTokens: 6 }, cost: usd(4) })
  })
})

describe('what a run that takes a session up has used', () => {
  test.each<[past: string, events: object[], asked: object | undefined, total: number | undefined]>([
    ['in a session that has not worked', [], undefined, 50],
    ['after a usage that is the last word', [task, says, told(10, 5)], undefined, 35],
    ['in a turn whose work is not told, if nobody tells it', [task, told(10, 5), says], undefined, undefined],
    ['in a turn whose work the service tells', [task, told(10, 5), says], usage(20, 5), 25],
    ['in a turn of which it tells what was before', [task, told(10, 5), says], usage(9, 5), undefined],
  ])('%s', (_, past, asked, total) => {
    const budget = new Budget()
    for (const event of past) budget.add(event as never)
    budget.begin(false)
    if (budget.lacksBase) budget.addBase(asked && readUsage(asked as never))
    budget.add(told(40, 10) as never)
    expect(budget.run.tokens?.totalTokens).toBe(total)
  })

  test('what the service says when it is asked for the base does not count as told of the run', () => {
    const budget = new Budget()
    for (const event of [task, request(9, 9)]) budget.add(event as never)
    budget.begin(false)
    budget.addBase(readUsage(usage(9, 9)))
    budget.add(request(1, 2) as never)
    expect(budget.run.tokens?.totalTokens).toBe(3)
  })
})

describe('what a run has used at least', () => {
  const unreadable = { input_tokens: 3, output_tokens: -1 }
  const isRequest = { type: 'span.model_request_end' }
  test.each<[string, object[], number | undefined]>([
    ['nothing that is told', [says], undefined],
    ['what its requests tell', [request(1, 2), request(5, 6)], 14],
    ['and what can be read of them', [request(1, 2), { ...isRequest, model_usage: unreadable }], 6],
    ['also if one tells nothing', [isRequest, request(3, 4)], 7],
    [
      'what is told of the session',
      [request(1, 2), told(10, 5, undefined, { cache_read_input_tokens: 4 })],
      19,
    ],
    ['and what can be read of that', [{ type: 'session.usage', usage: unreadable }], 3],
  ])('%s', (_, now, tokens) => {
    const isOver = (maxTotalTokens: number) => {
      const budget = new Budget({ maxTotalTokens })
      for (const event of now) budget.add(event as never)
      return budget.exceeded() !== undefined
    }
    expect([isOver(tokens ?? 1), isOver((tokens ?? 1) + 1)]).toEqual([tokens !== undefined, false])
  })
})

describe('the bounds of a run', () => {
  const budgetOf = (flags: LimitFlags, now: object[]) => {
    const budget = new Budget(flags)
    for (const event of now) budget.add(event as never)
    return budget
  }

  test.each<[flags: LimitFlags, now: object[], why: string | undefined]>([
    [{}, [told(9, 9, '900')], undefined],
    [{ maxTotalTokens: 18 }, [], undefined],
    [{ maxTotalTokens: 19 }, [told(9, 9)], undefined],
    [{ maxTotalTokens: 3 }, [request(1, 2)], 'the run took 3 tokens, and --max-total-tokens is 3'],
    [{ maxTotalTokens: 18 }, [told(9, 9)], 'the run took 18 tokens, and --max-total-tokens is 18'],
    [
      { maxTotalTokens: 3 },
      [request(1, 2), { type: 'span.model_request_end' }],
      'the run took at least 3 tokens, and --max-total-tokens is 3',
    ],
    [
      { maxTotalTokens: 3 },
      [{ type: 'session.usage', usage: { input_tokens: 3, output_tokens: -1 } }],
      'the run took at least 3 tokens, and --max-total-tokens is 3',
    ],
    [{ maxCost: '1.5' }, [told(9, 9)], undefined],
    [{ maxCost: '1.5' }, [told(9, 9, '149')], undefined],
    [{ maxCost: '1.5' }, [told(9, 9, '150')], 'the run cost $1.50, and --max-cost is 1.5'],
    [{ maxCost: '1.509' }, [told(9, 9, '150')], 'the run cost $1.50, and --max-cost is 1.509'],
  ])('%j, after %j: %s', (flags, now, why) => {
    expect(budgetOf(flags, now).exceeded()).toBe(why)
  })

  test.each<[flags: LimitFlags, now: object[], lack: string | undefined]>([
    [{}, [says], undefined],
    [{ maxTotalTokens: 1 }, [], undefined],
    [
      { maxTotalTokens: 1 },
      [says],
      '--max-total-tokens cannot be kept: the service does not tell what the run uses',
    ],
    [
      { maxTotalTokens: 1, maxCost: '1' },
      [says, told(9, 9)],
      '--max-cost cannot be kept: the service does not tell what the run uses',
    ],
    [
      { maxTotalTokens: 1, maxCost: '1' },
      [says],
      '--max-total-tokens and --max-cost cannot be kept: the service does not tell what the run uses',
    ],
    [{ maxTotalTokens: 1, maxCost: '1' }, [says, told(9, 9, '1')], undefined],
  ])('%j, after %j cannot be kept: %s', (flags, now, lack) => {
    expect(budgetOf(flags, now).lack).toBe(lack)
  })

  test('what worked before the run says nothing of its bounds', () => {
    const budget = budgetOf({ maxTotalTokens: 1 }, [says])
    budget.begin(true)
    expect(budget.lack).toBe(undefined)
  })

  test.each<[flags: LimitFlags, now: object[], rounding: string | undefined]>([
    [{ maxCost: '1.509' }, [told(9, 9, '1')], '--max-cost 1.509 counts as $1.50'],
    [{ maxCost: '1.50' }, [told(9, 9, '1')], undefined],
    [{ maxCost: '1.509' }, [told(9, 9)], undefined],
    [{}, [told(9, 9, '1')], undefined],
  ])('%j, after %j counts as: %s', (flags, now, rounding) => {
    expect(budgetOf(flags, now).rounding).toBe(rounding)
  })

  test.each<[LimitFlags, boolean]>([
    [{}, false],
    [{ maxCost: '1' }, true],
    [{ maxTotalTokens: 1 }, true],
  ])('%j: bounded %s', (flags, isBounded) => {
    expect(hasLimits(flags)).toBe(isBounded)
  })
})
