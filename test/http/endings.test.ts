import { describe, expect, test } from 'vitest'
import type { DeliveryRules, DeliveryState } from '../../src/delivery-state.ts'
import { type Call, type Ending, Endings } from '../../src/endings.ts'
import { CliError, OutputClosed } from '../../src/errors.ts'
import { endpoints } from '../../src/wire/endpoints.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const event = { ...endpoints.sendEvents, inspectCommand: 'parley events list -s s1' }
const nothing = 'nothing was sent'

/** Starts a piece of work. Returns a function that ends the work. */
function open(endings: Endings, ending: Ending): () => Promise<void> {
  let finish = () => {}
  const work = endings.during(
    ending,
    () =>
      new Promise<void>((resolve) => {
        finish = resolve
      }),
  )
  return () => {
    finish()
    return work
  }
}

test('the result of an attempt replaces "sent", but does not lower the delivery state of an earlier attempt', () => {
  const endings = new Endings()
  const call = endings.begin(event)
  const reachState = (state: DeliveryState) => {
    call.reach(state)
    return call.state()
  }
  call.attempt()
  expect([reachState('sent'), reachState('refused')]).toEqual(['sent', 'refused'])
  call.attempt()
  expect([reachState('sent'), reachState('failed')]).toEqual(['sent', 'failed'])
  call.attempt()
  expect([reachState('not-sent'), reachState('sent')]).toEqual(['failed', 'sent'])
  call.attempt()
  expect([reachState('refused'), reachState('answered'), reachState('done')]).toEqual([
    'sent',
    'answered',
    'done',
  ])
  expect(reachState('failed')).toBe('done')
  call.end()
  expect(endings.sent).toBe('yes')
})

describe('delivery of a whole run', () => {
  test('the delivery of a run that changes something depends only on the requests that change something', () => {
    const endings = new Endings()
    open(endings, { isChange: true })
    const list = endings.begin(listRules)
    list.reach('done')
    list.end()
    expect([endings.sent, endings.interrupt().consequence]).toEqual(['no', 'nothing was sent'])
    const post = endings.begin(event)
    post.reach('sent')
    expect(endings.sent).toBe('unknown')
    endings.begin(listRules).reach('done')
    expect(endings.sent).toBe('unknown')
    post.reach('done')
    expect(endings.sent).toBe('yes')
  })

  test('the delivery of a run that only reads depends on all its requests', () => {
    for (const isToChange of [false, true]) {
      const endings = new Endings()
      if (isToChange) open(endings, { isChange: true })
      expect(endings.interrupt().consequence).toBe(isToChange ? nothing : undefined)
      if (isToChange) open(endings, { isChange: false })
      expect([endings.sent, endings.interrupt().consequence]).toEqual(['no', undefined])
      const list = endings.begin(listRules)
      list.reach('sent')
      list.end()
      expect([endings.sent, endings.interrupt().consequence]).toEqual(['unknown', undefined])
      endings.begin(listRules).reach('done')
      expect(endings.sent).toBe('yes')
    }
  })
})

/** Starts a run whose calls begin and end by name. */
function startRun(rules: DeliveryRules = event) {
  const endings = new Endings()
  const callsByName = new Map<string, Call>()
  return {
    endings,
    begin: (name: string, options?: Parameters<typeof endings.begin>[1]) =>
      void callsByName.set(name, endings.begin(rules, options)),
    end(name: string, state: DeliveryState) {
      callsByName.get(name)?.reach(state)
      callsByName.get(name)?.end()
    },
  }
}

describe('message of an interrupted run', () => {
  test('the message of an interrupted run describes its running calls, or else the calls that ended last', () => {
    const { endings, begin, end } = startRun()
    const refused = 'nothing was accepted'
    begin('a')
    begin('b')
    end('a', 'refused')
    expect(endings.interrupt().consequence).toBe(nothing)
    end('b', 'refused')
    expect(endings.interrupt().consequence).toBe(refused)
    begin('c')
    expect(endings.interrupt().consequence).toBe(nothing)
    end('c', 'refused')
    expect(endings.interrupt().consequence).toBe(refused)
    // Read-only calls and batch calls do not change the last message. A batch prints its results itself.
    const list = endings.begin(listRules)
    list.reach('failed')
    list.end()
    begin('d', true)
    end('d', 'failed')
    expect(endings.interrupt().consequence).toBe(refused)
  })

  test('the message of an interrupted run describes the work in progress, from the inside out', async () => {
    const { endings, begin, end } = startRun()
    const close = open(endings, { words: () => 'the session continues' })
    begin('a')
    expect(endings.interrupt().consequence).toBe(`${nothing}; the session continues`)
    end('a', 'refused')
    expect(endings.interrupt().consequence).toBe('the session continues')
    const inner = await endings.during(
      { words: () => 'one answer is lost' },
      async () => endings.interrupt().consequence,
    )
    expect(inner).toBe('one answer is lost; the session continues')
    await close()
    expect(endings.interrupt().consequence).toBe('nothing was accepted')
  })

  test('the message of an interrupted run starts with what was accepted, and then describes the running calls', () => {
    const { endings, begin, end } = startRun()
    open(endings, { words: () => 'the session continues' })
    endings.begin(event).confirm('the task was accepted')
    expect(endings.interrupt().consequence).toBe('the task was accepted; the session continues')
    begin('a')
    expect(endings.interrupt().consequence).toBe(
      `the task was accepted; after that ${nothing}; the session continues`,
    )
    end('a', 'done')
    expect(endings.interrupt().consequence).toBe('the task was accepted; the session continues')
  })

  test('the message of an interrupted run has the resume command of its innermost work', async () => {
    const endings = new Endings()
    expect(endings.getResumeCommand()).toBeUndefined()
    const close = open(endings, { resume: () => ['events', 'run'] })
    open(endings, { words: () => 'the session continues' })
    expect(endings.getResumeCommand()).toEqual(['events', 'run'])
    await close()
    expect(endings.getResumeCommand()).toBeUndefined()
  })
})

describe('failure of a piece of work', () => {
  const explain = (failure: CliError) => failure.with({ resume: ['again'] })

  test('a failure has the consequences of its work, but a closed stdout stays unchanged', async () => {
    const endings = new Endings()
    const failing = (error: Error) =>
      endings.during({ explain }, () => Promise.reject(error)).catch((thrown: unknown) => thrown)
    expect(await failing(new CliError('file', 'full'))).toMatchObject({ details: { resume: ['again'] } })
    const closed = new OutputClosed()
    expect(await failing(closed)).toBe(closed)
    const bug = await failing(new TypeError('no such method'))
    expect(bug).toMatchObject({ kind: 'unexpected', details: { resume: ['again'], sent: 'unknown' } })
  })

  test("a failure of work that can resume has that work's answer to whether a repetition may duplicate something", async () => {
    const endings = new Endings()
    const call = endings.begin(event)
    call.confirm()
    call.end()
    const rerun = () => ({ mayDuplicate: false })
    const failure = await endings
      .during({ rerun }, () => Promise.reject(new CliError('stopped', 'late', { sent: 'yes' })))
      .catch((thrown: unknown) => thrown)
    expect(failure).toMatchObject({ details: { mayDuplicate: false } })
    expect(endings.mayDuplicate).toBe(true)
  })
})

describe('`retry` of an interrupted run', () => {
  test.each<[string, DeliveryRules, DeliveryState | undefined, string]>([
    ['nothing was sent', event, 'not-sent', 'later'],
    ['an event was refused', event, 'refused', 'later'],
    ['an event is in flight', event, 'sent', 'look-first'],
    ['an event was accepted', event, 'done', 'never'],
    ['a chat is in flight', chatRules, 'sent', 'later'],
    ['an answer was cut off', chatRules, 'answered', 'later'],
    ['an answer was read', chatRules, 'done', 'never'],
  ])('`retry` of an interrupted run follows from its only request: %s', (_, rules, state, retry) => {
    const endings = new Endings()
    open(endings, { isChange: true })
    const call = endings.begin(rules)
    if (state) call.reach(state)
    expect(endings.retry).toBe(retry)
    call.end()
    expect(endings.retry).toBe(retry)
  })

  test('`retry` of an interrupted run is "later" if nothing was sent, also before the first call', () => {
    const endings = new Endings()
    open(endings, { isChange: true })
    expect([endings.retry, endings.sent]).toEqual(['later', 'no'])
    endings.begin(event)
    expect([endings.retry, endings.sent]).toEqual(['later', 'no'])
  })

  test('`retry` of an interrupted run is "never" if one of two events was accepted and the other refused', () => {
    const endings = new Endings()
    open(endings, { isChange: true })
    const [first, second] = [endings.begin(event), endings.begin(event)]
    first.reach('done')
    second.reach('refused')
    expect(endings.retry).toBe('never')
  })

  test.each<[string, DeliveryRules, first: DeliveryState, then: DeliveryState, string]>([
    ['an event was accepted, and nothing of the next was sent', event, 'done', 'not-sent', 'never'],
    ['an event was accepted, and the next refused', event, 'done', 'refused', 'never'],
    ['an event was accepted, and the delivery of the next is unknown', event, 'done', 'sent', 'look-first'],
    [
      'the delivery of an event is unknown, and nothing of the next was sent',
      event,
      'failed',
      'not-sent',
      'look-first',
    ],
    ['the delivery of an event is unknown, and the next was refused', event, 'sent', 'refused', 'look-first'],
    ['the delivery of an event is unknown, and the next was accepted', event, 'answered', 'done', 'never'],
    ['an event was refused, and so was the next', event, 'refused', 'refused', 'later'],
    ['an answer was read, and the next request refused', chatRules, 'done', 'refused', 'later'],
    ['an answer was cut off, and the next request refused', chatRules, 'answered', 'refused', 'later'],
  ])(
    '`retry` of an interrupted run follows from its last two requests: %s',
    (_, rules, first, then, retry) => {
      const { endings, begin, end } = startRun(rules)
      open(endings, { isChange: true })
      begin('a')
      end('a', first)
      begin('b')
      end('b', then)
      expect(endings.retry).toBe(retry)
    },
  )

  test('`retry` after an accepted or unknown event stays while later events are refused, unless the run resumes', () => {
    for (const [first, retry] of [
      ['done', 'never'],
      ['sent', 'look-first'],
    ] as const) {
      const { endings, begin, end } = startRun()
      open(endings, { isChange: true })
      begin('a')
      end('a', first)
      for (const name of ['b', 'c', 'd']) {
        begin(name)
        expect(endings.retry).toBe(retry)
        end(name, 'refused')
        expect(endings.retry).toBe(retry)
      }
      open(endings, { rerun: () => ({ mayDuplicate: false }) })
      expect(endings.retry).toBe('later')
    }
  })

  test('`retry` of a run that can resume is "later", unless a delivery is unknown', () => {
    const endings = new Endings()
    open(endings, { isChange: true })
    const call = endings.begin(event)
    call.reach('done')
    let isResumed = true
    open(endings, { rerun: () => (isResumed ? { mayDuplicate: false } : undefined) })
    expect(endings.retry).toBe('later')
    isResumed = false
    expect(endings.retry).toBe('never')
    isResumed = true
    endings.begin(event).reach('sent')
    expect(endings.retry).toBe('look-first')
  })

  test('`retry` of an interrupted run is "later" if it only reads, and "never" for a batch', () => {
    const endings = new Endings()
    endings.begin(listRules).reach('answered')
    expect(endings.retry).toBe('later')
    open(endings, { isChange: true })
    endings.begin(chatRules, true).reach('sent')
    expect(endings.retry).toBe('never')
  })
})

describe('repetition that may send or bill something twice', () => {
  test.each<[string, DeliveryRules, first: DeliveryState, then: DeliveryState, boolean]>([
    ['no request was accepted', chatRules, 'refused', 'refused', false],
    ['an answer was read before a refusal', chatRules, 'done', 'refused', true],
    ['an answer was cut off before a refusal', chatRules, 'answered', 'refused', true],
    ['an answer is missing', chatRules, 'refused', 'sent', true],
    ['a 5xx may hide an answer', chatRules, 'failed', 'not-sent', true],
    ['an event was accepted', event, 'done', 'refused', true],
    ['lists were read', listRules, 'done', 'sent', false],
  ])(
    'a repeated run may send or bill something twice if a request was accepted or may be: %s',
    (_, rules, first, then, mayDuplicate) => {
      const { endings, begin, end } = startRun(rules)
      if (rules !== listRules) open(endings, { isChange: true })
      begin('a')
      end('a', first)
      begin('b')
      expect(endings.mayDuplicate).toBe(rules !== listRules && first !== 'refused')
      end('b', then)
      expect(endings.mayDuplicate).toBe(mayDuplicate)
    },
  )

  test('a repetition of a run with a running request may send or bill something twice', () => {
    const endings = new Endings()
    const call = endings.begin(chatRules, true)
    expect(endings.mayDuplicate).toBe(false)
    call.reach('sent')
    expect(endings.mayDuplicate).toBe(true)
  })

  test('a resumed run may send or bill twice only what its command repeats', () => {
    const { endings, begin, end } = startRun()
    begin('a')
    end('a', 'done')
    open(endings, { rerun: () => ({ mayDuplicate: false }) })
    expect(endings.mayDuplicate).toBe(false)
    open(endings, { rerun: () => ({ mayDuplicate: true }) })
    expect(endings.mayDuplicate).toBe(true)
  })
})
