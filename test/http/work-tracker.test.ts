import { describe, expect, test } from 'vitest'
import type { DeliveryRules, DeliveryState } from '../../src/delivery-state.ts'
import { CliError, OutputClosedError } from '../../src/errors.ts'
import { endpoints } from '../../src/wire/endpoints.ts'
import { type TrackedCall, type WorkHooks, WorkTracker } from '../../src/work-tracker.ts'

const listRules = endpoints.listEvents
const chatRules = endpoints.chat
const event = { ...endpoints.sendEvents, inspectCommand: 'parley events list -s s1' }
const nothing = 'nothing was sent'

/** Starts a piece of work. Returns a function that ends the work. */
function open(tracker: WorkTracker, hooks: WorkHooks): () => Promise<void> {
  let finish = () => {}
  const work = tracker.during(
    hooks,
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

test('the delivery state of a request is the furthest state of its attempts, and a running attempt counts as "sent"', () => {
  const tracker = new WorkTracker()
  const call = tracker.beginCall(event)
  const reachState = (state: DeliveryState) => {
    call.reach(state)
    return call.state()
  }
  call.beginAttempt()
  expect([reachState('sent'), reachState('refused')]).toEqual(['sent', 'refused'])
  call.beginAttempt()
  expect([reachState('sent'), reachState('failed')]).toEqual(['sent', 'failed'])
  call.beginAttempt()
  expect([reachState('not-sent'), reachState('sent')]).toEqual(['failed', 'sent'])
  call.beginAttempt()
  const states = (['refused', 'answered', 'done'] as const).map(reachState)
  expect(states).toEqual(['sent', 'answered', 'done'])
  expect(reachState('failed')).toBe('done')
  call.end()
  expect(tracker.sent).toBe('yes')
})

test('for a run that changes data, the field `sent` ignores requests that only read', () => {
  const tracker = new WorkTracker()
  tracker.requests = 'changes'
  const list = tracker.beginCall(listRules)
  list.reach('done')
  list.end()
  expect([tracker.sent, tracker.interrupt().consequence]).toEqual(['no', 'nothing was sent'])
  const post = tracker.beginCall(event)
  post.reach('sent')
  expect(tracker.sent).toBe('unknown')
  tracker.beginCall(listRules).reach('done')
  expect(tracker.sent).toBe('unknown')
  post.reach('done')
  expect(tracker.sent).toBe('yes')
})

test('a run that only reads has `sent` "yes" after one completed request, and a run without requests never reports "nothing was sent"', () => {
  const tracker = new WorkTracker()
  expect(tracker.interrupt().consequence).toBe(undefined)
  tracker.requests = 'reads'
  expect([tracker.sent, tracker.interrupt().consequence]).toEqual(['no', nothing])
  const list = tracker.beginCall(listRules)
  list.reach('sent')
  list.end()
  expect([tracker.sent, tracker.interrupt().consequence]).toEqual(['unknown', undefined])
  tracker.beginCall(listRules).reach('done')
  expect(tracker.sent).toBe('yes')
})

test.each<[string, CliError, WorkTracker['requests'], DeliveryState | undefined, consequence?: string]>([
  ['of a file', new CliError('file', 'full'), 'reads', undefined, nothing],
  ['to connect', new CliError('not-sent', 'refused', { sent: 'no' }), 'changes', 'not-sent', nothing],
  ['to connect for a list', new CliError('not-sent', 'refused'), 'changes', undefined, nothing],
  [
    'with a hint',
    new CliError('file', 'full', { consequence: 'a\nb' }),
    'changes',
    undefined,
    `${nothing}\na\nb`,
  ],
  [
    'of a session with its own `sent`',
    new CliError('stopped', 'no', { sent: 'no' }),
    'changes',
    undefined,
    nothing,
  ],
  ['of a session', new CliError('waiting', 'a tool use waits'), 'changes', undefined],
  ['after a request', new CliError('file', 'full'), 'changes', 'refused'],
  ['of page 2', new CliError('not-sent', 'refused', { sent: 'no' }), 'reads', 'done'],
  ['of too many files', new CliError('file', 'EMFILE', { sent: 'unknown' }), 'changes', undefined],
  ['of a command without requests', new CliError('file', 'full'), undefined, undefined],
])(
  'a failure %s reports "nothing was sent" only if the run has sent nothing',
  (_, failure, requests, state, consequence) => {
    const { tracker, complete } = startRun()
    tracker.requests = requests
    if (state) complete('a', state)
    const { details } = tracker.addRequestState(failure)
    expect(details).toEqual({
      sent: failure.details.sent ?? tracker.sent,
      mayDuplicate: tracker.mayDuplicate,
      consequence,
    })
  },
)

/** Starts a run whose calls begin and end by name. */
function startRun(rules: DeliveryRules = event) {
  const tracker = new WorkTracker()
  const callsByName = new Map<string, TrackedCall>()
  const begin = (name: string, options?: Parameters<typeof tracker.beginCall>[1]) =>
    void callsByName.set(name, tracker.beginCall(rules, options))
  const end = (name: string, state: DeliveryState) => {
    callsByName.get(name)?.reach(state)
    callsByName.get(name)?.end()
  }
  const complete = (name: string, state: DeliveryState) => {
    begin(name)
    end(name, state)
  }
  return { tracker, begin, end, complete }
}

describe('message of an interrupted run', () => {
  test('the message of an interrupted run describes its running calls, or else the calls that ended last', () => {
    const { tracker, begin, end } = startRun()
    const refused = 'nothing was accepted'
    const unknown =
      "the event may have been accepted: check with 'parley events list -s s1' before sending again"
    begin('a')
    begin('b')
    end('a', 'sent')
    expect(tracker.interrupt().consequence).toBe(unknown)
    end('b', 'refused')
    begin('c')
    expect(tracker.interrupt().consequence).toBe(undefined)
    end('c', 'refused')
    expect(tracker.interrupt().consequence).toBe(refused)
    // Read-only calls and batch calls do not change the last message. A batch prints its results itself.
    const list = tracker.beginCall(listRules)
    list.reach('failed')
    list.end()
    begin('d', true)
    end('d', 'failed')
    expect(tracker.interrupt().consequence).toBe(refused)
  })

  test('the message of an interrupted run describes the running call that got the furthest', () => {
    const tracker = new WorkTracker()
    tracker.beginCall(chatRules).reach('sent')
    tracker.beginCall(chatRules).reach('refused')
    expect(tracker.interrupt().consequence).toBe('the request was sent; it may have been carried out')
  })

  test('the message of an interrupted batch is "nothing was sent" only until it sends a request', () => {
    const { tracker, begin, end } = startRun()
    tracker.requests = 'changes'
    begin('a', true)
    expect(tracker.interrupt().consequence).toBe(nothing)
    end('a', 'sent')
    expect(tracker.interrupt().consequence).toBe(undefined)
  })

  test('the message of an interrupted run describes the unfinished work, the innermost first', async () => {
    const { tracker, begin, end } = startRun()
    tracker.requests = 'changes'
    const close = open(tracker, { onInterrupt: () => 'the session continues' })
    begin('a')
    expect(tracker.interrupt().consequence).toBe(`${nothing}; the session continues`)
    const closeResumable = open(tracker, { getResumeCommand: () => ['events', 'run'] })
    expect(tracker.interrupt().consequence).toBe('the session continues')
    await closeResumable()
    end('a', 'refused')
    expect(tracker.interrupt().consequence).toBe('the session continues')
    const inner = await tracker.during(
      { onInterrupt: () => 'one answer is lost' },
      async () => tracker.interrupt().consequence,
    )
    expect(inner).toBe('one answer is lost; the session continues')
    await close()
    expect(tracker.interrupt().consequence).toBe('nothing was accepted')
  })

  test('the message of an interrupted run starts with the accepted request, and then describes the running calls', () => {
    const tracker = new WorkTracker()
    open(tracker, { onInterrupt: () => 'the session continues' })
    tracker.beginCall(event).confirm('the task was accepted')
    expect(tracker.interrupt().consequence).toBe('the task was accepted; the session continues')
    const post = tracker.beginCall(event)
    expect(tracker.interrupt().consequence).toBe('the task was accepted; the session continues')
    post.reach('refused')
    const both = `the task was accepted; after that nothing was accepted; the session continues`
    expect(tracker.interrupt().consequence).toBe(both)
    post.reach('done')
    post.end()
    expect(tracker.interrupt().consequence).toBe('the task was accepted; the session continues')
  })

  test('after an interrupt, parley prints the resume command of the innermost unfinished work that has a resume command', async () => {
    const tracker = new WorkTracker()
    expect(tracker.getResumeCommand()).toBeUndefined()
    const close = open(tracker, { getResumeCommand: () => ['events', 'run'] })
    open(tracker, { onInterrupt: () => 'the session continues' })
    expect(tracker.getResumeCommand()).toEqual(['events', 'run'])
    await close()
    expect(tracker.getResumeCommand()).toBeUndefined()
  })
})

const explain = (failure: CliError) => failure.with({ resumeArguments: ['again'] })

test('a failure has the resume command of the failed work, unless the cause is a closed stdout', async () => {
  const tracker = new WorkTracker()
  const failing = (error: Error) =>
    tracker.during({ explain }, () => Promise.reject(error)).catch((thrown: unknown) => thrown)
  const resumed = { resumeArguments: ['again'] }
  expect(await failing(new CliError('file', 'full'))).toMatchObject({ details: resumed })
  const closed = new OutputClosedError()
  expect(await failing(closed)).toBe(closed)
  tracker.requests = 'changes'
  const consequence = expect.stringMatching(/; nothing was sent$/)
  const bug = { kind: 'unexpected', details: { ...resumed, sent: 'unknown', consequence } }
  expect(await failing(new TypeError('no such method'))).toMatchObject(bug)
})

test('if a failed run can be resumed, `mayDuplicate` describes the resume command, not a fresh run', async () => {
  const tracker = new WorkTracker()
  const call = tracker.beginCall(event)
  call.confirm()
  call.end()
  const describeRerun = () => ({ mayDuplicate: false })
  const failure = await tracker
    .during({ describeRerun }, () => Promise.reject(new CliError('stopped', 'late', { sent: 'yes' })))
    .catch((thrown: unknown) => thrown)
  expect(failure).toMatchObject({ details: { mayDuplicate: false } })
  expect(tracker.mayDuplicate).toBe(true)
})

describe('`retry` of an interrupted run', () => {
  test.each<[string, retry: string, DeliveryRules, DeliveryState]>([
    ['nothing was sent', 'later', event, 'not-sent'],
    ['its only event was refused', 'later', event, 'refused'],
    ['its only event was sent and not answered', 'look-first', event, 'sent'],
    ['its only event was accepted', 'never', event, 'done'],
    ['its only chat was sent and not answered', 'later', chatRules, 'sent'],
    ['its only answer was cut off', 'later', chatRules, 'answered'],
    ['its only answer was read', 'never', chatRules, 'done'],
  ])('if a run was interrupted, and %s, `retry` is "%s"', (_, retry, rules, state) => {
    const tracker = new WorkTracker()
    tracker.requests = 'changes'
    expect([tracker.retry, tracker.sent]).toEqual(['later', 'no'])
    const call = tracker.beginCall(rules)
    call.reach(state)
    expect(tracker.retry).toBe(retry)
    call.end()
    expect(tracker.retry).toBe(retry)
  })

  test.each<[string, retry: string, DeliveryRules, first: DeliveryState, then: DeliveryState]>([
    ['an event was accepted, and nothing of the next event was sent', 'never', event, 'done', 'not-sent'],
    ['an event was accepted, and the next event not answered', 'look-first', event, 'done', 'sent'],
    ['an event got a 5xx, and nothing of the next event was sent', 'look-first', event, 'failed', 'not-sent'],
    ['an event was not answered, and the next event refused', 'look-first', event, 'sent', 'refused'],
    ['the answer to an event was cut off, and the next event accepted', 'never', event, 'answered', 'done'],
    ['a chat was answered, and the next chat refused', 'later', chatRules, 'done', 'refused'],
  ])('if a run was interrupted, and %s, `retry` is "%s"', (_, retry, rules, first, then) => {
    const { tracker, complete } = startRun(rules)
    tracker.requests = 'changes'
    complete('a', first)
    complete('b', then)
    expect(tracker.retry).toBe(retry)
  })

  test('after an accepted or unanswered event, refused events do not change `retry` of an interrupted run', () => {
    for (const [first, retry] of [
      ['done', 'never'],
      ['sent', 'look-first'],
    ] as const) {
      const { tracker, begin, end, complete } = startRun()
      tracker.requests = 'changes'
      complete('a', first)
      for (const name of ['b', 'c', 'd']) {
        begin(name)
        expect(tracker.retry).toBe(retry)
        end(name, 'refused')
        expect(tracker.retry).toBe(retry)
      }
      open(tracker, { describeRerun: () => ({ mayDuplicate: false }) })
      expect(tracker.retry).toBe('later')
    }
  })

  test('`retry` of a run that can be resumed is "later", unless the answer to an event is missing', () => {
    const tracker = new WorkTracker()
    tracker.requests = 'changes'
    const call = tracker.beginCall(event)
    call.reach('done')
    let isResumed = true
    open(tracker, { describeRerun: () => (isResumed ? { mayDuplicate: false } : undefined) })
    expect(tracker.retry).toBe('later')
    isResumed = false
    expect(tracker.retry).toBe('never')
    isResumed = true
    tracker.beginCall(event).reach('sent')
    expect(tracker.retry).toBe('look-first')
  })

  test('`retry` of an interrupted run is "later" if it only reads, and "never" for a batch', () => {
    const tracker = new WorkTracker()
    tracker.beginCall(listRules).reach('answered')
    expect(tracker.retry).toBe('later')
    tracker.requests = 'changes'
    tracker.beginCall(chatRules, true).reach('sent')
    expect(tracker.retry).toBe('never')
  })
})

test.each<[string, 'may' | 'cannot', DeliveryRules, first: DeliveryState, then: DeliveryState]>([
  ['the service refused all requests', 'cannot', chatRules, 'refused', 'refused'],
  ['the service answered a chat and refused the next chat', 'may', chatRules, 'done', 'refused'],
  ['the answer to the last chat is missing', 'may', chatRules, 'refused', 'sent'],
  ['the run only read lists', 'cannot', listRules, 'done', 'sent'],
])('if %s, a repetition of the run %s send or bill something twice', (_, verb, rules, first, then) => {
  const { tracker, begin, end, complete } = startRun(rules)
  if (rules !== listRules) tracker.requests = 'changes'
  complete('a', first)
  begin('b')
  expect(tracker.mayDuplicate).toBe(rules !== listRules && first !== 'refused')
  end('b', then)
  expect(tracker.mayDuplicate).toBe(verb === 'may')
})

test('for a batch, the field `sent` is "unknown" after one request without an answer', () => {
  const { tracker, begin, complete } = startRun(chatRules)
  complete('a', 'sent')
  complete('b', 'done')
  expect(tracker.sent).toBe('yes')
  begin('c', true)
  begin('d')
  expect(tracker.sent).toBe('unknown')
})

test('the unfinished work may replace `retry` of an interrupted run', () => {
  const tracker = new WorkTracker()
  open(tracker, { describeRerun: () => ({ retry: 'look-first' }) })
  expect(tracker.retry).toBe('look-first')
})

test('a repetition of a run with a running request may send or bill something twice', () => {
  const tracker = new WorkTracker()
  const call = tracker.beginCall(chatRules, true)
  expect(tracker.mayDuplicate).toBe(false)
  call.reach('sent')
  expect(tracker.mayDuplicate).toBe(true)
})

test('a resumed run may send or bill something twice only if the resume command repeats a request', () => {
  const { tracker, complete } = startRun()
  complete('a', 'done')
  open(tracker, { describeRerun: () => ({ mayDuplicate: false }) })
  expect(tracker.mayDuplicate).toBe(false)
  open(tracker, { describeRerun: () => ({ mayDuplicate: true }) })
  expect(tracker.mayDuplicate).toBe(true)
})

const isSaved = (name: string) => ({ outcome: `is saved as ${name}`, name })

test('an interrupted run saves the received data of all unfinished work, the newest first, and names the files', () => {
  const tracker = new WorkTracker()
  open(tracker, { save: () => [isSaved('a')], onInterrupt: () => 'outer' })
  const save = () => [undefined, { outcome: 'could not be saved as b' }, isSaved('c')]
  open(tracker, { save })
  expect(tracker.interrupt()).toEqual({
    consequence:
      'the received data could not be saved as b; the rest is saved as c; the received data is saved as a; outer',
    savedFiles: ['c', 'a'],
  })
})

test('a failed run names the file of the text and the file of the rest', async () => {
  const save = () => ['a.txt', 'b.json'].map(isSaved)
  const work = new WorkTracker().during({ save }, () => Promise.reject(new CliError('file', 'no space')))
  await expect(work).rejects.toMatchObject({
    message: 'no space; the received data is saved as a.txt; the rest is saved as b.json',
    details: { savedFiles: ['a.txt', 'b.json'] },
  })
})

test('an interrupted run reports the message of an accepted request even if a later accepted request has no message', () => {
  const tracker = new WorkTracker()
  tracker.requests = 'changes'
  tracker.beginCall(event).confirm('the task was accepted')
  tracker.beginCall(event).confirm()
  expect(tracker.interrupt().consequence).toBe('the task was accepted')
})

test.each([
  ['work without callbacks', new CliError('file', 'full'), {}],
  ['work that has saved nothing', new TypeError('a bug'), { save: () => [] }],
])('the work tracker throws the error of %s unchanged', async (_, error, hooks) => {
  await expect(new WorkTracker().during(hooks, () => Promise.reject(error))).rejects.toBe(error)
})
