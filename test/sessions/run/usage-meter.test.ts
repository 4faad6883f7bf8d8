import { expect, test } from 'vitest'
import { UsageMeter } from '../../../src/sessions/running/usage-meter.ts'
import { readSessionUsage } from '../../../src/wire/sessions/usage.ts'

type Limits = ConstructorParameters<typeof UsageMeter>[0]
const usage = (input: number, output: number, cents?: unknown) => ({
  input_tokens: input,
  output_tokens: output,
  ...(cents === undefined ? {} : { list_cost: { amount: cents, currency: 'USD' } }),
})
const createUsageEvent = (input: number, output: number, cents?: unknown) => ({
  type: 'session.usage',
  usage: usage(input, output, cents),
})
const request = (input: number, output: number, cents?: unknown) => ({
  type: 'span.model_request_end',
  model_usage: usage(input, output, cents),
})
const noUsage = { type: 'span.model_request_end' }
const task = { type: 'user.message' }
/** Only the field `usage` of a usage event counts. */
const says = { type: 'agent.message', usage: usage(1, 1) }
const usd = (amount: number) => ({ amount: BigInt(amount), currency: 'USD' })

interface Row {
  past?: object[]
  now: object[]
  run: object
  session?: object
}

const rows: Record<string, Row> = {
  'in an older session, only the usage since the task counts for the run': {
    past: [task, says, createUsageEvent(10, 5, '100'), task, says, createUsageEvent(30, 9, '150')],
    now: [says, createUsageEvent(40, 10, '187')],
    run: { tokens: { inputTokens: 10, outputTokens: 1, totalTokens: 11 }, cost: usd(37) },
    session: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(187) },
  },
  'an unreadable count of one request makes the total of the run unknown': {
    now: [request(1, 2), request(3, -1), request(5, 6)],
    run: { tokens: { inputTokens: 9, outputTokens: null, totalTokens: null } },
  },
  'all usage of an older session that never worked counts for the run': {
    past: ['user.message', 'x.agent.message', 'x.session.status_running', 'session.status_running_soon'].map(
      (type) => ({ type }),
    ),
    now: [createUsageEvent(40, 10)],
    run: { tokens: { totalTokens: 50 } },
  },
  'the cost of a run is unknown if only one of two model requests has a cost': {
    now: [request(1, 1, '5'), request(1, 1)],
    run: { tokens: { totalTokens: 4 }, cost: undefined },
  },
  'if a token total did not grow since the task, the token count of the run is zero': {
    past: [task, createUsageEvent(10, 5, '7')],
    now: [createUsageEvent(10, 9, '7')],
    run: { tokens: { inputTokens: 0, outputTokens: 4, totalTokens: 4 }, cost: usd(0) },
  },
  'if a token total became less since the task, the token count of the run is unknown': {
    past: [task, createUsageEvent(10, 5, '7')],
    now: [createUsageEvent(5, 9, '6')],
    run: { tokens: { outputTokens: 4, totalTokens: undefined }, cost: undefined },
    session: { tokens: { inputTokens: 5, outputTokens: 9, totalTokens: 14 }, cost: usd(6) },
  },
  'a later usage event with the same tokens updates the cost': {
    now: [createUsageEvent(40, 10, '187'), createUsageEvent(40, 10, '190')],
    run: { tokens: { totalTokens: 50 }, cost: usd(190) },
  },
  'without usage events, the usage of a run is the sum of its model requests': {
    past: [task, request(1000, 1000)],
    now: [request(3, 4), says, request(5, 6)],
    run: { tokens: { inputTokens: 8, outputTokens: 10, totalTokens: 18 }, cost: undefined },
    session: { tokens: undefined, cost: undefined },
  },
  'a usage event with only a cost has no token counts': {
    now: [{ type: 'session.usage', usage: { list_cost: { amount: '5', currency: 'USD' } } }],
    run: { tokens: undefined, cost: usd(5) },
  },
  'the usage of model requests is ignored if the session sends usage events': {
    now: [request(3, 4), createUsageEvent(40, 10, '1'), request(5, 6)],
    run: { tokens: { inputTokens: 40, outputTokens: 10, totalTokens: 50 }, cost: usd(1) },
  },
}

function createMeter(events: object[], limits?: Limits) {
  const meter = new UsageMeter(limits)
  for (const event of events) meter.add(event as never)
  return meter
}

test.each(Object.entries(rows))('%s', (_, { past = [], now, run, session }) => {
  const meter = createMeter(past)
  meter.startRun(true)
  for (const event of now) meter.add(event as never)
  const { runUsage } = meter
  expect(runUsage).toMatchObject(run)
  if (session) expect(meter.sessionUsage).toMatchObject(session)
})

test('the usage before a task is subtracted from the usage after the task', () => {
  const meter = createMeter([says])
  meter.startRun(true)
  expect(meter.isStartTotalUnknown).toBe(true)
  meter.addTotal(readSessionUsage(usage(10, 10, '5')))
  meter.startRun(false)
  expect([meter.isStartTotalUnknown, meter.hasTotal]).toEqual([false, false])
  meter.addTotal(readSessionUsage(usage(15, 11, '9')))
  expect(meter.runUsage).toMatchObject({ tokens: { totalTokens: 6 }, cost: usd(4) })
})

const startedTurn = [task, createUsageEvent(10, 5), says]
test.each<[title: string, past: object[], queried: object | undefined, total: number | undefined]>([
  ['all usage of a session that had not worked before the run', [], undefined, 50],
  ['the usage since the service returned a first total', startedTurn, usage(20, 5), 25],
  ['nothing if the service returns less usage than before', startedTurn, usage(9, 5), undefined],
])('events run without a task counts %s', (_, past, queried, total) => {
  const meter = createMeter(past)
  meter.startRun(false)
  meter.addTotal(queried && readSessionUsage(queried))
  if (queried) meter.startRun(false)
  meter.add(createUsageEvent(40, 10) as never)
  expect(meter.runUsage.tokens?.totalTokens).toBe(total)
})

const used3 = 'the run used at least 3 tokens, and --max-total-tokens is 3'
const usedExactly3 = used3.replace('at least ', '')
const costsTooMuch = 'the run cost $1.51, and --max-cost is 1.509'
test.each<[title: string, limits: Limits, events: object[], message: string | undefined]>([
  ['any usage if no limit is set', {}, [createUsageEvent(9, 9, '900')], undefined],
  ['no usage yet', { maxTotalTokens: 3 }, [], undefined],
  ['tokens that reach it', { maxTotalTokens: 3 }, [createUsageEvent(1, 2)], usedExactly3],
  [
    'input tokens that reach it, without output tokens',
    { maxTotalTokens: 3 },
    [{ type: 'session.usage', usage: { input_tokens: 3 } }],
    used3,
  ],
  ['requests that reach it, one without usage', { maxTotalTokens: 3 }, [request(1, 2), noUsage], used3],
  [
    'input tokens that reach the limit, although the output tokens are unreadable',
    { maxTotalTokens: 3 },
    [{ type: 'session.usage', usage: usage(3, -1) }],
    used3,
  ],
  ['a cost below the limit', { maxCost: '1.5' }, [createUsageEvent(9, 9, '149')], undefined],
  ['a cost in whole cents at the limit', { maxCost: '1.509' }, [createUsageEvent(9, 9, '151')], costsTooMuch],
  ['a cost in whole cents below the limit', { maxCost: '1.509' }, [createUsageEvent(9, 9, '150')], undefined],
  ['no cost yet and a limit below one cent', { maxCost: '0.001' }, [createUsageEvent(0, 0, '0')], undefined],
])('events run compares the known usage with each limit: %s', (_, limits, events, message) => {
  expect(createMeter(events, limits).describeExceededLimit()).toBe(message)
})

const bothLimits = { maxTotalTokens: 1, maxCost: '1' }
const problem = 'cannot be enforced: the service does not report the'
test.each<[title: string, limits: Limits, events: object[], warning: string | undefined]>([
  ['no limit, no warning', {}, [says], undefined],
  [
    'usage without a cost',
    bothLimits,
    [says, createUsageEvent(9, 9)],
    `--max-cost ${problem} cost of the run`,
  ],
  ['no usage', bothLimits, [says], `--max-total-tokens and --max-cost ${problem} usage of the run`],
])(
  'events run warns about limits if the service does not report what they limit: %s',
  (_, limits, events, warning) => {
    expect(createMeter(events, limits).limitWarning).toBe(warning)
  },
)

test('before the agent works in this run, events run does not warn that a limit cannot be enforced', () => {
  const meter = createMeter([says], { maxTotalTokens: 1 })
  meter.startRun(true)
  expect(meter.limitWarning).toBe(undefined)
})

test('a usage meter has limits only if --max-cost or --max-total-tokens is set', () => {
  const limits = [{}, { maxCost: '1' }, { maxTotalTokens: 1 }]
  expect(limits.map((each) => new UsageMeter(each).hasLimits)).toEqual([false, true, true])
})
