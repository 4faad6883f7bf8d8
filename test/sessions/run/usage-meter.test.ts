import { describe, expect, test } from 'vitest'
import { RunBudget } from '../../../src/sessions/running/budget.ts'
import { readSessionUsage } from '../../../src/wire/sessions/usage.ts'

type Value = Record<string, unknown>
type Limits = ConstructorParameters<typeof RunBudget>[0]
const usage = (input: number, output: number, cents?: unknown, more: Value = {}) => ({
  input_tokens: input,
  output_tokens: output,
  ...(cents === undefined ? {} : { list_cost: { amount: cents, currency: 'USD' } }),
  ...more,
})
const createUsageEvent = (input: number, output: number, cents?: unknown, more?: Value) => ({
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
  'counts all usage of a new session': {
    now: [says, createUsageEvent(10, 5, '187')],
    run: { tokens: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }, cost: usd(187) },
    session: { tokens: { inputTokens: 10, outputTokens: 5, totalTokens: 15 }, cost: usd(187) },
  },
  'counts in an older session the difference to the last usage before the task': {
    past: [task, says, createUsageEvent(10, 5, '100'), task, says, createUsageEvent(30, 9, '150')],
    now: [says, createUsageEvent(40, 10, '187')],
    run: { tokens: { inputTokens: 10, outputTokens: 1, totalTokens: 11 }, cost: usd(37) },
    session: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(187) },
  },
  'an unreadable count of one request makes the total unknown': {
    now: [
      request(1, 2),
      { type: 'span.model_request_end', model_usage: { input_tokens: 3, output_tokens: -1 } },
      request(5, 6),
    ],
    run: { tokens: { inputTokens: 9, outputTokens: null, totalTokens: null } },
  },
  'counts a session as new if it has not worked yet': {
    past: [
      task,
      { type: 'x.agent.message' },
      { type: 'x.session.status_running' },
      { type: 'session.status_running_soon' },
    ],
    now: [createUsageEvent(40, 10)],
    run: { tokens: { totalTokens: 50 } },
  },
  'does not count a session as new once it has started to work': {
    past: [task, { type: 'session.status_running' }],
    now: [createUsageEvent(40, 10)],
    run: {},
  },
  'ignores the usage field of other events': {
    now: [{ ...says, usage: usage(9, 9), model_usage: usage(9, 9) }],
    run: {},
  },
  'counts a cost without tokens': {
    now: [{ type: 'session.usage', usage: { list_cost: { amount: '7', currency: 'USD' } } }],
    run: { tokens: undefined, cost: usd(7) },
  },
  'adds the costs of requests': {
    now: [request(1, 1, '5'), request(1, 1, '6')],
    run: { tokens: { totalTokens: 4 }, cost: usd(11) },
  },
  'the cost is unknown if only the first of two requests has a cost': {
    now: [request(1, 1, '5'), request(1, 1)],
    run: { tokens: { totalTokens: 4 }, cost: undefined },
  },
  'a part that did not grow is zero': {
    past: [task, createUsageEvent(10, 5, '7')],
    now: [createUsageEvent(10, 9, '7')],
    run: { tokens: { inputTokens: 0, outputTokens: 4, totalTokens: 4 }, cost: usd(0) },
  },
  'a part that became less is unknown': {
    past: [task, createUsageEvent(10, 5, '7')],
    now: [createUsageEvent(5, 9, '6')],
    run: { tokens: { outputTokens: 4, totalTokens: 4 }, cost: undefined },
    session: { tokens: { inputTokens: 5, outputTokens: 9, totalTokens: 14 }, cost: usd(6) },
  },
  'a cost is unknown if the usage before the run had none': {
    past: [task, createUsageEvent(10, 5)],
    now: [createUsageEvent(11, 6, '7')],
    run: { tokens: { totalTokens: 2 }, cost: undefined },
  },
  'a later usage with the same tokens updates the cost': {
    now: [createUsageEvent(40, 10, '187'), createUsageEvent(40, 10, '190')],
    run: { tokens: { totalTokens: 50 }, cost: usd(190) },
  },
  'adds the usage of requests if no usage event arrives': {
    past: [task, request(1000, 1000)],
    now: [request(3, 4), says, request(5, 6)],
    run: { tokens: { inputTokens: 8, outputTokens: 10, totalTokens: 18 }, cost: undefined },
    session: {},
  },
  'a request without usage makes the total unknown': {
    now: [request(3, 4), { type: 'span.model_request_end', is_error: true }, says, request(5, 6)],
    run: {},
  },
  'requests do not count after a usage event of the session': {
    now: [request(3, 4), createUsageEvent(40, 10, '1'), request(5, 6)],
    run: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(1) },
  },
  'counts cache tokens under both field names': {
    now: [
      createUsageEvent(1, 2, undefined, {
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
  'an amount beyond the safe integers of JavaScript is exact': {
    past: [task, createUsageEvent(1, 1, '90071992547409929007')],
    now: [createUsageEvent(1, 2, '90071992547409929008')],
    run: { cost: usd(1) },
  },
  'the cost of a run is unknown if the session was billed in another currency before': {
    past: [task, createUsageEvent(1, 1, '5')],
    now: [{ type: 'session.usage', usage: { input_tokens: 2, list_cost: { amount: '9', currency: 'EUR' } } }],
    run: { tokens: { inputTokens: 1 }, cost: undefined },
    session: { cost: { amount: 9n, currency: 'EUR' } },
  },
  'requests in two currencies have no sum': {
    now: ['EUR', 'USD', 'USD'].map((currency) => ({
      type: 'span.model_request_end',
      model_usage: { input_tokens: 1, list_cost: { amount: '9', currency } },
    })),
    run: { tokens: { inputTokens: 3 }, cost: undefined },
  },
  'ignores a usage event with lower counts than an earlier one': {
    now: [createUsageEvent(40, 10, '187'), createUsageEvent(30, 10, '150')],
    run: { tokens: { inputTokens: 40 }, cost: usd(187) },
  },
}

describe('usage of a run', () => {
  test.each(Object.entries(rows))('%s', (_, { past = [], now, run, session }) => {
    const budget = new RunBudget()
    for (const event of past) budget.add(event as never)
    budget.begin(true)
    for (const event of now) budget.add(event as never)
    const { run: figures } = budget
    expect(figures).toMatchObject(run)
    if (Object.keys(run).length === 0) expect(figures).toEqual({})
    if ('tokens' in run) expect(figures.tokens).toEqual(run.tokens && expect.objectContaining(run.tokens))
    if (session) expect(budget.session).toMatchObject(session)
  })

  test('the usage before the task is subtracted from the usage after it', () => {
    const budget = new RunBudget()
    budget.add(says as never)
    budget.begin(true)
    expect(budget.lacksBase).toBe(true)
    budget.addBase(readSessionUsage(usage(10, 10, '5')))
    expect([budget.lacksBase, budget.hasTotal]).toEqual([false, false])
    budget.addTotal(readSessionUsage(usage(15, 11, '9')))
    expect(budget.run).toMatchObject({ tokens: { totalTokens: 6 }, cost: usd(4) })
  })
})

describe('usage of events run without a task', () => {
  test.each<[past: string, events: object[], asked: object | undefined, total: number | undefined]>([
    ['all usage of a session that has not worked', [], undefined, 50],
    [
      'nothing in a started turn if the service returns no usage',
      [task, createUsageEvent(10, 5), says],
      undefined,
      undefined,
    ],
    [
      'the difference to the usage that the service returns',
      [task, createUsageEvent(10, 5), says],
      usage(20, 5),
      25,
    ],
    [
      'nothing if the service returns less usage than before',
      [task, createUsageEvent(10, 5), says],
      usage(9, 5),
      undefined,
    ],
  ])('events run without a task counts %s', (_, past, asked, total) => {
    const budget = new RunBudget()
    for (const event of past) budget.add(event as never)
    budget.begin(false)
    if (budget.lacksBase) budget.addBase(asked && readSessionUsage(asked as never))
    budget.add(createUsageEvent(40, 10) as never)
    expect(budget.run.tokens?.totalTokens).toBe(total)
  })
})

describe('minimum usage of events run', () => {
  test.each<[string, object[], number | undefined]>([
    ['unknown without usage', [says], undefined],
    ['the sum of its requests', [request(1, 2), request(5, 6)], 14],
  ])('the minimum usage of events run is %s', (_, now, tokens) => {
    const isOver = (maxTotalTokens: number) => {
      const budget = new RunBudget({ maxTotalTokens })
      for (const event of now) budget.add(event as never)
      return budget.describeExceededLimit() !== undefined
    }
    expect([isOver(tokens ?? 1), isOver((tokens ?? 1) + 1)]).toEqual([tokens !== undefined, false])
  })
})

describe('limits of events run', () => {
  const createBudget = (flags: Limits, now: object[]) => {
    const budget = new RunBudget(flags)
    for (const event of now) budget.add(event as never)
    return budget
  }

  test.each<[flags: Limits, now: object[], why: string | undefined]>([
    [{}, [createUsageEvent(9, 9, '900')], undefined],
    [{ maxTotalTokens: 18 }, [], undefined],
    [{ maxTotalTokens: 3 }, [request(1, 2)], 'the run used 3 tokens, and --max-total-tokens is 3'],
    [
      { maxTotalTokens: 3 },
      [request(1, 2), { type: 'span.model_request_end' }],
      'the run used at least 3 tokens, and --max-total-tokens is 3',
    ],
    [
      { maxTotalTokens: 3 },
      [{ type: 'session.usage', usage: { input_tokens: 3, output_tokens: -1 } }],
      'the run used at least 3 tokens, and --max-total-tokens is 3',
    ],
    [{ maxCost: '1.5' }, [createUsageEvent(9, 9, '149')], undefined],
    [{ maxCost: '1.509' }, [createUsageEvent(9, 9, '150')], 'the run cost $1.50, and --max-cost is 1.509'],
  ])('with the limits %j, events run stops after the events %j because: %s', (flags, now, why) => {
    expect(createBudget(flags, now).describeExceededLimit()).toBe(why)
  })

  test.each<[flags: Limits, now: object[], lack: string | undefined]>([
    [{}, [says], undefined],
    [
      { maxTotalTokens: 1, maxCost: '1' },
      [says, createUsageEvent(9, 9)],
      '--max-cost cannot be enforced: the service does not report the usage of the run',
    ],
    [
      { maxTotalTokens: 1, maxCost: '1' },
      [says],
      '--max-total-tokens and --max-cost cannot be enforced: the service does not report the usage of the run',
    ],
  ])('with the limits %j, events run warns after the events %j: %s', (flags, now, lack) => {
    expect(createBudget(flags, now).limitWarning).toBe(lack)
  })

  test('work before events run does not show whether a limit can be enforced', () => {
    const budget = createBudget({ maxTotalTokens: 1 }, [says])
    budget.begin(true)
    expect(budget.limitWarning).toBe(undefined)
  })

  test.each<[Limits, boolean]>([
    [{}, false],
    [{ maxCost: '1' }, true],
    [{ maxTotalTokens: 1 }, true],
  ])('events run with the flags %j has a limit: %s', (flags, isBounded) => {
    expect(new RunBudget(flags).hasLimits).toBe(isBounded)
  })
})
