import { describe, expect, test } from 'vitest'
import { deliveryStates, isCertainlyUnaccepted } from '../../../src/delivery-state.ts'
import {
  applyReplyAuditLine,
  getNextReplyStep,
  type ReplyAuditLine,
  type ReplyState,
  resumeReplyState,
  updateUnconfirmedReply,
} from '../../../src/sessions/running/reply-state.ts'

type UnconfirmedReply = Parameters<typeof updateUnconfirmedReply>[0]
type ListEvidence = Parameters<typeof updateUnconfirmedReply>[1]

const result = { text: 'out', isError: false }
const interrupted = { text: 'interrupted, effect unknown', isError: true }
const sent = { at: 1_000_000, idleEvents: new Set(['r1']) }

const states = {
  deciding: { is: 'deciding' },
  'left-open': { is: 'left-open' },
  executing: { is: 'executing' },
  'has-result': { is: 'has-result', result },
  posting: { is: 'posting', sent },
  'posting a result': { is: 'posting', sent, result },
  unconfirmed: { is: 'unconfirmed', sent },
  'unconfirmed result': { is: 'unconfirmed', sent, result },
  closed: { is: 'closed', sent },
} satisfies Record<string, ReplyState>

type Named = keyof typeof states
const names = Object.keys(states) as Named[]

const lines = {
  decision: { event: 'decision' },
  left: { event: 'decision', staysOpen: true },
  start: { event: 'start' },
  end: { event: 'end', result },
  sent: { event: 'sent', sent },
  accepted: { event: 'accepted' },
  refused: { event: 'refused' },
  unknown: { event: 'unknown' },
  elsewhere: { event: 'answered-elsewhere' },
} satisfies Record<string, ReplyAuditLine>

/** Returns the name of a reply's state, and the first letters of its command's result. */
const describeReply = (reply: ReplyState) =>
  'result' in reply && reply.result ? `${reply.is}+${reply.result.text.slice(0, 3)}` : reply.is

/** The next states if a line changes the state, but keeps the result. */
const changes = (to: string, withResult = to): Record<Named, string> => ({
  deciding: to,
  'left-open': to,
  executing: `${withResult}+int`,
  'has-result': `${withResult}+out`,
  posting: to,
  'posting a result': `${withResult}+out`,
  unconfirmed: to,
  'unconfirmed result': `${withResult}+out`,
  closed: to,
})

describe('states of a reply after a line of the audit file', () => {
  test.each<[keyof typeof lines, Record<Named, string>]>([
    ['decision', changes('deciding', 'has-result')],
    ['left', all('left-open')],
    ['start', all('executing')],
    ['end', all('has-result+out')],
    ['sent', changes('posting')],
    ['accepted', changes('closed')],
    ['elsewhere', changes('closed')],
    ['refused', changes('deciding', 'has-result')],
    ['unknown', changes('unconfirmed')],
  ])('each state of a reply changes as documented after the audit line "%s"', (line, after) => {
    expect(
      Object.fromEntries(
        names.map((name) => [name, describeReply(applyReplyAuditLine(states[name], lines[line]))]),
      ),
    ).toEqual(after)
  })
})

function all(name: string) {
  return Object.fromEntries(names.map((each) => [each, name])) as Record<Named, string>
}

test('each state of a reply changes as documented if the run resumes', () => {
  const idleEvents = new Set(['r1', 'r2'])
  expect(Object.fromEntries(names.map((name) => [name, resumeReplyState(states[name], idleEvents)]))).toEqual(
    {
      deciding: { is: 'deciding' },
      'left-open': { is: 'deciding' },
      executing: { is: 'has-result', result: interrupted },
      'has-result': { is: 'has-result', result },
      posting: { is: 'unconfirmed', sent, olderIdleEvents: idleEvents },
      'posting a result': { is: 'unconfirmed', sent, result, olderIdleEvents: idleEvents },
      unconfirmed: { is: 'unconfirmed', sent, olderIdleEvents: idleEvents },
      'unconfirmed result': { is: 'unconfirmed', sent, result, olderIdleEvents: idleEvents },
      closed: { is: 'unconfirmed', sent, olderIdleEvents: idleEvents },
    },
  )
})

test('only a reply that is undecided, ready or of unknown delivery has a next step', () => {
  expect(Object.fromEntries(names.map((name) => [name, getNextReplyStep(states[name])]))).toEqual({
    deciding: 'decide',
    'left-open': undefined,
    executing: undefined,
    'has-result': 'post',
    posting: undefined,
    'posting a result': undefined,
    unconfirmed: 'poll',
    'unconfirmed result': 'poll',
    closed: undefined,
  })
})

describe('list that shows whether a reply arrived', () => {
  const second = 1000
  const before = new Set(['r1', 'r2'])
  const unconfirmed: UnconfirmedReply = { is: 'unconfirmed', sent, olderIdleEvents: before }
  const shown = (more: Partial<ListEvidence>): ListEvidence => ({
    isListed: true,
    showsClients: false,
    idleEvents: new Set(['r1', 'r2', 'r3']),
    idleAt: Number.NaN,
    ...more,
  })
  const known = { idleEvents: before }
  const soon = sent.at + second

  const rows: [string, Partial<UnconfirmedReply>, Partial<ListEvidence>, number, string][] = [
    ['shows no idle event', { waitingSince: 0 }, { idleEvents: new Set() }, soon, 'unconfirmed'],
    ['shows no newer idle event', { waitingSince: 0 }, known, soon, 'unconfirmed'],
    [
      'is the first, so its idle events may be older',
      { olderIdleEvents: undefined },
      {},
      soon,
      'unconfirmed',
    ],
    ['shows a newer idle event without the tool use', {}, { isListed: false }, soon, 'closed'],
    ['shows a newer idle event with the tool use', {}, {}, soon, 'unconfirmed'],
    [
      'has shown a newer idle event for less than 5 s',
      { waitingSince: soon },
      {},
      soon + 4 * second,
      'unconfirmed',
    ],
    [
      'has shown a newer idle event for 5 s after a reply with a result',
      { waitingSince: soon, result },
      {},
      soon + 5 * second,
      'has-result+out',
    ],
    [
      "shows, after 60 s, a known idle event 31 s after the reply by the service's clock",
      { waitingSince: 0 },
      { ...known, idleAt: sent.at + 31 * second },
      sent.at + 60 * second,
      'deciding',
    ],
    [
      "shows a known idle event 30 s after the reply by the service's clock, which may be a difference of clocks",
      { waitingSince: 0 },
      { ...known, idleAt: sent.at + 30 * second },
      sent.at + 60 * second,
      'unconfirmed',
    ],
    [
      "shows a known idle event 31 s after the reply by the service's clock, but the request may still arrive",
      { waitingSince: 0 },
      { ...known, idleAt: sent.at + 31 * second },
      sent.at + 30 * second,
      'unconfirmed',
    ],
    [
      "has clients' events, and an idle event that was unknown when the reply was sent 30 s ago",
      { waitingSince: sent.at },
      { ...known, showsClients: true },
      sent.at + 30 * second,
      'deciding',
    ],
    [
      "has clients' events, and an idle event that was unknown when the reply was sent only 29 s ago",
      { waitingSince: sent.at },
      { ...known, showsClients: true },
      sent.at + 29 * second,
      'unconfirmed',
    ],
    [
      'is the first, and whose idle event, which was unknown when the reply was sent, omits the tool use',
      { olderIdleEvents: undefined },
      { isListed: false },
      soon,
      'closed',
    ],
    [
      'omits the tool use, but shows only the known idle event',
      { olderIdleEvents: undefined },
      { idleEvents: new Set(['r1']), isListed: false },
      soon,
      'unconfirmed',
    ],
    [
      'omits the tool use and one of the known idle events',
      { olderIdleEvents: undefined, sent: { ...sent, idleEvents: new Set(['r0', 'r1']) } },
      { isListed: false },
      soon,
      'unconfirmed',
    ],
    [
      'omits the tool use, and no idle event was known when the reply was sent',
      { olderIdleEvents: undefined, sent: { ...sent, idleEvents: new Set() } },
      { isListed: false },
      soon,
      'unconfirmed',
    ],
    [
      'omits the tool use, but lags behind the known idle event',
      { olderIdleEvents: new Set(['r0', 'r1', 'r2']) },
      { idleEvents: new Set(['r0']), isListed: false, idleAt: 0 },
      soon,
      'unconfirmed',
    ],
    [
      'shows a newer idle event, and that the session has worked since',
      { waitingSince: soon },
      { isListed: undefined },
      soon + 60 * second,
      'unconfirmed',
    ],
  ]
  test.each(rows.map(([name, more, list, now, after]) => [name, after, more, list, now] as const))(
    'after a list that %s, a reply of unknown delivery has the state "%s"',
    (_, after, more, list, now) => {
      expect(describeReply(updateUnconfirmedReply({ ...unconfirmed, ...more }, shown(list), now))).toBe(after)
    },
  )

  test('a list does not prove that an idle event is newer than a reply whose sending time is unknown', () => {
    const unknown = resumeReplyState(
      applyReplyAuditLine(states.deciding, lines.unknown),
      before,
    ) as UnconfirmedReply
    const late = { ...known, idleAt: Number.MAX_SAFE_INTEGER }
    expect(updateUnconfirmedReply(unknown, shown(late), Number.MAX_SAFE_INTEGER).is).toBe('unconfirmed')
    expect(updateUnconfirmedReply(unknown, shown({ isListed: false }), soon).is).toBe('closed')
  })

  test('a reply of unknown delivery keeps the time since when the session waits again', () => {
    expect(updateUnconfirmedReply(unconfirmed, shown({}), soon)).toMatchObject({ waitingSince: soon })
    expect(
      updateUnconfirmedReply({ ...unconfirmed, olderIdleEvents: undefined }, shown({}), soon),
    ).toMatchObject({
      olderIdleEvents: new Set(['r1', 'r2', 'r3']),
    })
  })
})

test('a request was certainly not accepted if it was not sent or was refused', () => {
  expect([...deliveryStates, undefined].filter(isCertainlyUnaccepted)).toEqual(['not-sent', 'refused'])
})
