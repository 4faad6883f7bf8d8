import { describe, expect, test } from 'vitest'
import { deliveryStates, isCertainlyUnaccepted } from '../../../src/delivery-state.ts'
import {
  type Doubt,
  getNextStep,
  type ListEvidence,
  type ReplyLine,
  type ReplyState,
  resumeReply,
  settleByList,
  stepReply,
} from '../../../src/sessions/running/replying.ts'

const result = { text: 'out', isError: false }
const interrupted = { text: 'interrupted, effect unknown', isError: true }
const sent = { at: 1_000_000, idleEvents: new Set(['r1']) }

const states = {
  deciding: { is: 'deciding' },
  left: { is: 'left' },
  working: { is: 'working' },
  ready: { is: 'ready', result },
  posting: { is: 'posting', sent },
  'posting a result': { is: 'posting', sent, result },
  'in doubt': { is: 'in-doubt', sent },
  'in doubt about a result': { is: 'in-doubt', sent, result },
  settled: { is: 'settled', sent },
} satisfies Record<string, ReplyState>

type Named = keyof typeof states
const names = Object.keys(states) as Named[]

const lines = {
  decision: { event: 'decision' },
  left: { event: 'decision', isLeft: true },
  start: { event: 'start' },
  end: { event: 'end', result },
  sent: { event: 'sent', sent },
  accepted: { event: 'accepted' },
  refused: { event: 'refused' },
  unknown: { event: 'unknown' },
} satisfies Record<string, ReplyLine>

/** Returns the name of a reply's state, and the first letters of its command's result. */
const describeReply = (reply: ReplyState) =>
  'result' in reply && reply.result ? `${reply.is}+${reply.result.text.slice(0, 3)}` : reply.is

describe('states of a reply after a line of the audit file', () => {
  test.each<[keyof typeof lines, Record<Named, string>]>([
    [
      'decision',
      {
        deciding: 'deciding',
        left: 'deciding',
        working: 'ready+int',
        ready: 'ready+out',
        posting: 'deciding',
        'posting a result': 'ready+out',
        'in doubt': 'deciding',
        'in doubt about a result': 'ready+out',
        settled: 'deciding',
      },
    ],
    ['left', all('left')],
    ['start', all('working')],
    ['end', all('ready+out')],
    [
      'sent',
      {
        deciding: 'posting',
        left: 'posting',
        working: 'posting+int',
        ready: 'posting+out',
        posting: 'posting',
        'posting a result': 'posting+out',
        'in doubt': 'posting',
        'in doubt about a result': 'posting+out',
        settled: 'posting',
      },
    ],
    [
      'accepted',
      {
        deciding: 'settled',
        left: 'settled',
        working: 'settled+int',
        ready: 'settled+out',
        posting: 'settled',
        'posting a result': 'settled+out',
        'in doubt': 'settled',
        'in doubt about a result': 'settled+out',
        settled: 'settled',
      },
    ],
    [
      'refused',
      {
        deciding: 'deciding',
        left: 'deciding',
        working: 'ready+int',
        ready: 'ready+out',
        posting: 'deciding',
        'posting a result': 'ready+out',
        'in doubt': 'deciding',
        'in doubt about a result': 'ready+out',
        settled: 'deciding',
      },
    ],
    [
      'unknown',
      {
        deciding: 'in-doubt',
        left: 'in-doubt',
        working: 'in-doubt+int',
        ready: 'in-doubt+out',
        posting: 'in-doubt',
        'posting a result': 'in-doubt+out',
        'in doubt': 'in-doubt',
        'in doubt about a result': 'in-doubt+out',
        settled: 'in-doubt',
      },
    ],
  ])('each state of a reply changes as documented after the audit line "%s"', (line, after) => {
    expect(
      Object.fromEntries(names.map((name) => [name, describeReply(stepReply(states[name], lines[line]))])),
    ).toEqual(after)
  })
})

function all(name: string) {
  return Object.fromEntries(names.map((each) => [each, name])) as Record<Named, string>
}

test('each state of a reply changes as documented if the run resumes', () => {
  const idleEvents = new Set(['r1', 'r2'])
  expect(Object.fromEntries(names.map((name) => [name, resumeReply(states[name], idleEvents)]))).toEqual({
    deciding: { is: 'deciding' },
    left: { is: 'deciding' },
    working: { is: 'ready', result: interrupted },
    ready: { is: 'ready', result },
    posting: { is: 'in-doubt', sent, before: idleEvents },
    'posting a result': { is: 'in-doubt', sent, result, before: idleEvents },
    'in doubt': { is: 'in-doubt', sent, before: idleEvents },
    'in doubt about a result': { is: 'in-doubt', sent, result, before: idleEvents },
    settled: { is: 'in-doubt', sent, before: idleEvents },
  })
})

test('only a reply that is undecided, ready or of unknown delivery has a next step', () => {
  expect(Object.fromEntries(names.map((name) => [name, getNextStep(states[name])]))).toEqual({
    deciding: 'decide',
    left: undefined,
    working: undefined,
    ready: 'post',
    posting: undefined,
    'posting a result': undefined,
    'in doubt': 'poll',
    'in doubt about a result': 'poll',
    settled: undefined,
  })
})

describe('list that shows whether a reply arrived', () => {
  const second = 1000
  const before = new Set(['r1', 'r2'])
  const doubt: Doubt = { is: 'in-doubt', sent, before }
  const shown = (more: Partial<ListEvidence>): ListEvidence => ({
    isAnswered: false,
    isListed: true,
    showsClients: false,
    idleEvents: new Set(['r1', 'r2', 'r3']),
    idleAt: Number.NaN,
    ...more,
  })
  const known = { idleEvents: before }
  const soon = sent.at + second

  test.each<[string, Partial<Doubt>, Partial<ListEvidence>, number, string]>([
    ['shows a reply', {}, { isAnswered: true }, soon, 'settled'],
    ['shows a reply, and no newer idle event', {}, { ...known, isAnswered: true }, soon, 'settled'],
    ['shows no idle event', { askedSince: 0 }, { idleEvents: new Set() }, soon, 'in-doubt'],
    ['shows no newer idle event', { askedSince: 0 }, known, soon, 'in-doubt'],
    ['is the first, so its idle events may be older', { before: undefined }, {}, soon, 'in-doubt'],
    ['shows a newer idle event without the tool use', {}, { isListed: false }, soon, 'settled'],
    ['shows a newer idle event without ids', {}, { isListed: undefined }, soon, 'in-doubt'],
    ['shows a newer idle event with the tool use', {}, {}, soon, 'in-doubt'],
    [
      'has shown a newer idle event for less than 5 s',
      { askedSince: soon },
      {},
      soon + 4 * second,
      'in-doubt',
    ],
    ['has shown a newer idle event for 5 s', { askedSince: soon }, {}, soon + 5 * second, 'deciding'],
    [
      'has shown a newer idle event for 5 s, for a result',
      { askedSince: soon, result },
      {},
      soon + 5 * second,
      'ready+out',
    ],
    [
      'shows a known idle event, 31 s later by the clock, after 60 s',
      { askedSince: 0 },
      { ...known, idleAt: sent.at + 31 * second },
      sent.at + 60 * second,
      'deciding',
    ],
    [
      'shows a known idle event, 30 s later, which may be a clock difference',
      { askedSince: 0 },
      { ...known, idleAt: sent.at + 30 * second },
      sent.at + 60 * second,
      'in-doubt',
    ],
    [
      'shows a known idle event, 31 s later by the clock, but the request may still arrive',
      { askedSince: 0 },
      { ...known, idleAt: sent.at + 31 * second },
      sent.at + 30 * second,
      'in-doubt',
    ],
    [
      'shows clients, and an idle event that was unknown at the sending time, 30 s after it',
      { askedSince: sent.at },
      { ...known, showsClients: true },
      sent.at + 30 * second,
      'deciding',
    ],
    [
      'shows clients and a once unknown idle event, but the request may still arrive',
      { askedSince: sent.at },
      { ...known, showsClients: true },
      sent.at + 29 * second,
      'in-doubt',
    ],
    [
      'shows clients and a once unknown idle event for less than 5 s',
      { askedSince: sent.at + 56 * second },
      { ...known, showsClients: true },
      sent.at + 60 * second,
      'in-doubt',
    ],
    [
      'shows a once unknown idle event, but no clients, so a reply may be hidden',
      { askedSince: sent.at },
      known,
      sent.at + 60 * second,
      'in-doubt',
    ],
    [
      'is the first, and shows a once unknown idle event without the tool use',
      { before: undefined },
      { isListed: false },
      soon,
      'settled',
    ],
    [
      'omits the tool use, but lags behind the known idle event',
      { before: new Set(['r0', 'r1', 'r2']) },
      { idleEvents: new Set(['r0']), isListed: false, idleAt: 0 },
      soon,
      'in-doubt',
    ],
    [
      'shows a newer idle event, and that the session works since',
      { askedSince: soon },
      { isListed: undefined },
      soon + 60 * second,
      'in-doubt',
    ],
    [
      'shows the answered idle event, although it is later by the clock',
      { askedSince: 0 },
      { idleEvents: new Set(['r1']), idleAt: sent.at + 3600 * second },
      sent.at + 3600 * second,
      'in-doubt',
    ],
  ])(
    'events run decides about a reply of unknown delivery by a list that %s',
    (_, more, list, now, after) => {
      expect(describeReply(settleByList({ ...doubt, ...more }, shown(list), now))).toBe(after)
    },
  )

  test('a list does not prove that an idle event is newer than a reply whose sending time is unknown', () => {
    const unknown = resumeReply(stepReply(states.deciding, lines.unknown), before) as Doubt
    const late = { ...known, idleAt: Number.MAX_SAFE_INTEGER }
    expect(settleByList(unknown, shown(late), Number.MAX_SAFE_INTEGER).is).toBe('in-doubt')
    expect(settleByList(unknown, shown({ isListed: false }), soon).is).toBe('settled')
  })

  test('a reply of unknown delivery keeps the time since when the session waits again', () => {
    expect(settleByList(doubt, shown({}), soon)).toMatchObject({ askedSince: soon })
    expect(settleByList({ ...doubt, before: undefined }, shown({}), soon)).toMatchObject({
      before: new Set(['r1', 'r2', 'r3']),
    })
  })
})

test('a request was certainly not accepted if it was not sent or was refused', () => {
  expect([...deliveryStates, undefined].filter(isCertainlyUnaccepted)).toEqual(['not-sent', 'refused'])
})
