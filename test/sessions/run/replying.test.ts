import { describe, expect, test } from 'vitest'
import { deliveryStates, isCertainlyUnaccepted } from '../../../src/delivery-state.ts'
import {
  type Doubt,
  getNextStep,
  type JournalLine,
  type ListEvidence,
  type Reply,
  resumeReply,
  settleByList,
  stepReply,
} from '../../../src/sessions/running/replying.ts'

const result = { text: 'out', isError: false }
const interrupted = { text: 'interrupted, effect unknown', isError: true }
const sent = { at: 1_000_000, rests: new Set(['r1']) }

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
} satisfies Record<string, Reply>

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
} satisfies Record<string, JournalLine>

/** What a reply is after a line: the name of its state, and whether it has the result of a command. */
const nameOf = (reply: Reply) =>
  'result' in reply && reply.result ? `${reply.is}+${reply.result.text.slice(0, 3)}` : reply.is

describe('a line of the journal', () => {
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
  ])('%s', (line, after) => {
    expect(
      Object.fromEntries(names.map((name) => [name, nameOf(stepReply(states[name], lines[line]))])),
    ).toEqual(after)
  })
})

function all(name: string) {
  return Object.fromEntries(names.map((each) => [each, name])) as Record<Named, string>
}

test('a run that goes on takes up each state', () => {
  const rests = new Set(['r1', 'r2'])
  expect(Object.fromEntries(names.map((name) => [name, resumeReply(states[name], rests)]))).toEqual({
    deciding: { is: 'deciding' },
    left: { is: 'deciding' },
    working: { is: 'ready', result: interrupted },
    ready: { is: 'ready', result },
    posting: { is: 'in-doubt', sent, before: rests },
    'posting a result': { is: 'in-doubt', sent, result, before: rests },
    'in doubt': { is: 'in-doubt', sent, before: rests },
    'in doubt about a result': { is: 'in-doubt', sent, result, before: rests },
    settled: { is: 'in-doubt', sent, before: rests },
  })
})

test('something is due only for what was decided by nobody, has a result, or is in doubt', () => {
  expect(Object.fromEntries(names.map((name) => [name, getNextStep(states[name])]))).toEqual({
    deciding: 'decide',
    left: undefined,
    working: undefined,
    ready: 'post',
    posting: undefined,
    'posting a result': undefined,
    'in doubt': 'look',
    'in doubt about a result': 'look',
    settled: undefined,
  })
})

describe('a list, for a reply in doubt', () => {
  const second = 1000
  const before = new Set(['r1', 'r2'])
  const doubt: Doubt = { is: 'in-doubt', sent, before }
  const shown = (more: Partial<ListEvidence>): ListEvidence => ({
    isAnswered: false,
    isListed: true,
    showsClients: false,
    rests: new Set(['r1', 'r2', 'r3']),
    restedAt: Number.NaN,
    ...more,
  })
  const known = { rests: before }
  const soon = sent.at + second

  test.each<[string, Partial<Doubt>, Partial<ListEvidence>, number, string]>([
    ['shows an answer', {}, { isAnswered: true }, soon, 'settled'],
    ['shows an answer, and no newer rest', {}, { ...known, isAnswered: true }, soon, 'settled'],
    ['shows no rest', { askedSince: 0 }, { rests: new Set() }, soon, 'in-doubt'],
    ['shows no newer rest', { askedSince: 0 }, known, soon, 'in-doubt'],
    ['is the first, so that its rests may have come before', { before: undefined }, {}, soon, 'in-doubt'],
    ['shows a newer rest that leaves it out', {}, { isListed: false }, soon, 'settled'],
    ['shows a newer rest that lists nothing', {}, { isListed: undefined }, soon, 'in-doubt'],
    ['shows a newer rest that lists it', {}, {}, soon, 'in-doubt'],
    ['has shown that for less than 5 s', { askedSince: soon }, {}, soon + 4 * second, 'in-doubt'],
    ['has shown that for 5 s', { askedSince: soon }, {}, soon + 5 * second, 'deciding'],
    ['has shown that for 5 s, of a result', { askedSince: soon, result }, {}, soon + 5 * second, 'ready+out'],
    [
      'shows an older rest, later by the clock, long after',
      { askedSince: 0 },
      { ...known, restedAt: sent.at + 31 * second },
      sent.at + 60 * second,
      'deciding',
    ],
    [
      'shows an older rest, later by what clocks may differ',
      { askedSince: 0 },
      { ...known, restedAt: sent.at + 30 * second },
      sent.at + 60 * second,
      'in-doubt',
    ],
    [
      'shows an older rest, later by the clock, but the request may be on its way',
      { askedSince: 0 },
      { ...known, restedAt: sent.at + 31 * second },
      sent.at + 30 * second,
      'in-doubt',
    ],
    [
      'shows a rest that was unknown when it was sent, 30 s after that, with the events of clients',
      { askedSince: sent.at },
      { ...known, showsClients: true },
      sent.at + 30 * second,
      'deciding',
    ],
    [
      'shows such a rest, but its request may still arrive',
      { askedSince: sent.at },
      { ...known, showsClients: true },
      sent.at + 29 * second,
      'in-doubt',
    ],
    [
      'shows such a rest, but has shown it for less than 5 s',
      { askedSince: sent.at + 56 * second },
      { ...known, showsClients: true },
      sent.at + 60 * second,
      'in-doubt',
    ],
    [
      'shows such a rest, but no events of clients, so that an answer may be hidden',
      { askedSince: sent.at },
      known,
      sent.at + 60 * second,
      'in-doubt',
    ],
    [
      'is the first, and shows a rest that was unknown and leaves it out',
      { before: undefined },
      { isListed: false },
      soon,
      'settled',
    ],
    [
      'leaves it out, but lags behind the rest that was known',
      { before: new Set(['r0', 'r1', 'r2']) },
      { rests: new Set(['r0']), isListed: false, restedAt: 0 },
      soon,
      'in-doubt',
    ],
    [
      'shows a newer rest, and that the session works since',
      { askedSince: soon },
      { isListed: undefined },
      soon + 60 * second,
      'in-doubt',
    ],
    [
      'shows the rest that was answered, whatever the clocks say',
      { askedSince: 0 },
      { rests: new Set(['r1']), restedAt: sent.at + 3600 * second },
      sent.at + 3600 * second,
      'in-doubt',
    ],
  ])('that %s', (_, more, list, now, after) => {
    expect(nameOf(settleByList({ ...doubt, ...more }, shown(list), now))).toBe(after)
  })

  test('does not tell whether a rest came after a reply of which nobody knows when it was sent', () => {
    const unknown = resumeReply(stepReply(states.deciding, lines.unknown), before) as Doubt
    const late = { ...known, restedAt: Number.MAX_SAFE_INTEGER }
    expect(settleByList(unknown, shown(late), Number.MAX_SAFE_INTEGER).is).toBe('in-doubt')
    expect(settleByList(unknown, shown({ isListed: false }), soon).is).toBe('settled')
  })

  test('takes the time from which it waits for it anew, and the rests of the first list', () => {
    expect(settleByList(doubt, shown({}), soon)).toMatchObject({ askedSince: soon })
    expect(settleByList({ ...doubt, before: undefined }, shown({}), soon)).toMatchObject({
      before: new Set(['r1', 'r2', 'r3']),
    })
  })
})

test('a request was certainly not taken if it was not sent, or was refused', () => {
  expect([...deliveryStates, undefined].filter(isCertainlyUnaccepted)).toEqual(['not-sent', 'refused'])
})
