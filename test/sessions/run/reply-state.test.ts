import { expect, test } from 'vitest'
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
  'decision without a reply': { event: 'decision', staysOpen: true },
  start: { event: 'start' },
  end: { event: 'end', result },
  sent: { event: 'sent', sent },
  accepted: { event: 'accepted' },
  refused: { event: 'refused' },
  unknown: { event: 'unknown' },
  'answered-elsewhere': { event: 'answered-elsewhere' },
} satisfies Record<string, ReplyAuditLine>

/** Returns the name of a reply's state, and the result of the command. */
const describeReply = (reply: ReplyState) =>
  'result' in reply && reply.result ? `${reply.is} (${reply.result.text})` : reply.is

/** Returns the next states after a line that changes the state, but keeps the result. */
const changes = (to: string, withResult = to): Record<Named, string> => ({
  deciding: to,
  'left-open': to,
  executing: `${withResult} (${interrupted.text})`,
  'has-result': `${withResult} (out)`,
  posting: to,
  'posting a result': `${withResult} (out)`,
  unconfirmed: to,
  'unconfirmed result': `${withResult} (out)`,
  closed: to,
})

const all = (name: string) => Object.fromEntries(names.map((each) => [each, name])) as Record<Named, string>

test.each<[keyof typeof lines, Record<Named, string>]>([
  ['decision', changes('deciding', 'has-result')],
  ['decision without a reply', all('left-open')],
  ['start', all('executing')],
  ['end', all('has-result (out)')],
  ['sent', changes('posting')],
  ['accepted', changes('closed')],
  ['answered-elsewhere', changes('closed')],
  ['refused', changes('deciding', 'has-result')],
  ['unknown', changes('unconfirmed')],
])('a reply in any state gets its documented next state after the audit line "%s"', (line, after) => {
  const next = names.map((name) => [name, describeReply(applyReplyAuditLine(states[name], lines[line]))])
  expect(Object.fromEntries(next)).toEqual(after)
})

test('a reply in any state gets its documented next state when a run resumes', () => {
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

test('getNextReplyStep returns "decide" if deciding, "post" with a result, "poll" if unconfirmed, otherwise undefined', () => {
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

const second = 1000
const before = new Set(['r1', 'r2'])
const unconfirmed: UnconfirmedReply = { is: 'unconfirmed', sent, olderIdleEvents: before }
const shown = (more: Partial<ListEvidence>): ListEvidence => ({
  isListed: true,
  showsClientEvents: false,
  idleEvents: new Set(['r1', 'r2', 'r3']),
  idleAt: Number.NaN,
  ...more,
})
const known = { idleEvents: before }
const soon = sent.at + second

const rows: [string, Partial<UnconfirmedReply>, Partial<ListEvidence>, number, string][] = [
  ['has no idle event', { waitingSince: 0 }, { idleEvents: new Set() }, soon, 'unconfirmed'],
  ['has no newer idle event', { waitingSince: 0 }, known, soon, 'unconfirmed'],
  [
    'is the first after the reply, so its idle events may be older',
    { olderIdleEvents: undefined },
    {},
    soon,
    'unconfirmed',
  ],
  ['has a newer idle event without the tool use', {}, { isListed: false }, soon, 'closed'],
  ['has a newer idle event with the tool use for the first time', {}, {}, soon, 'unconfirmed'],
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
    'has-result (out)',
  ],
  [
    "has, after 60 s, a known idle event 31 s after the reply by the service's clock",
    { waitingSince: 0 },
    { ...known, idleAt: sent.at + 31 * second },
    sent.at + 60 * second,
    'deciding',
  ],
  [
    "has a known idle event only 30 s after the reply by the service's clock, which may be wrong by 30 s",
    { waitingSince: 0 },
    { ...known, idleAt: sent.at + 30 * second },
    sent.at + 60 * second,
    'unconfirmed',
  ],
  [
    "has a known idle event 31 s after the reply by the service's clock, but the request may still arrive",
    { waitingSince: 0 },
    { ...known, idleAt: sent.at + 31 * second },
    sent.at + 30 * second,
    'unconfirmed',
  ],
  [
    "has clients' events, and an idle event that was unknown when the reply was sent 30 s ago",
    { waitingSince: sent.at },
    { ...known, showsClientEvents: true },
    sent.at + 30 * second,
    'deciding',
  ],
  [
    "has clients' events, and an idle event that was unknown when the reply was sent only 29 s ago",
    { waitingSince: sent.at },
    { ...known, showsClientEvents: true },
    sent.at + 29 * second,
    'unconfirmed',
  ],
  [
    'is the first after the reply, and has a new idle event without the tool use',
    { olderIdleEvents: undefined },
    { isListed: false },
    soon,
    'closed',
  ],
  [
    'has only the known idle event, without the tool use',
    { olderIdleEvents: undefined },
    { idleEvents: new Set(['r1']), isListed: false },
    soon,
    'unconfirmed',
  ],
  [
    'has a new idle event without the tool use, but omits a known idle event',
    { olderIdleEvents: undefined, sent: { ...sent, idleEvents: new Set(['r0', 'r1']) } },
    { isListed: false },
    soon,
    'unconfirmed',
  ],
  [
    'has an idle event without the tool use, and no idle event was known when the reply was sent',
    { olderIdleEvents: undefined, sent: { ...sent, idleEvents: new Set() } },
    { isListed: false },
    soon,
    'unconfirmed',
  ],
  [
    'lags behind the known idle event',
    { olderIdleEvents: new Set(['r0', 'r1', 'r2']) },
    { idleEvents: new Set(['r0']), isListed: false, idleAt: 0 },
    soon,
    'unconfirmed',
  ],
  [
    'has a newer idle event, after which the session has worked',
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

test('only an idle event that is new to the run closes a reply whose sending time is unknown', () => {
  const reply = applyReplyAuditLine(states.deciding, lines.unknown)
  const unknown = resumeReplyState(reply, before) as UnconfirmedReply
  const late = { ...known, idleAt: Number.MAX_SAFE_INTEGER }
  expect(updateUnconfirmedReply(unknown, shown(late), Number.MAX_SAFE_INTEGER).is).toBe('unconfirmed')
  expect(updateUnconfirmedReply(unknown, shown({ isListed: false }), soon).is).toBe('closed')
})

test('an unconfirmed reply stores when a list first showed that the session still waits for a reply', () => {
  expect(updateUnconfirmedReply(unconfirmed, shown({}), soon)).toMatchObject({ waitingSince: soon })
  const first = updateUnconfirmedReply({ ...unconfirmed, olderIdleEvents: undefined }, shown({}), soon)
  expect(first).toMatchObject({ olderIdleEvents: new Set(['r1', 'r2', 'r3']) })
  const worked = updateUnconfirmedReply(
    { ...unconfirmed, waitingSince: 0 },
    shown({ isListed: undefined }),
    soon,
  )
  expect(worked).toMatchObject({ waitingSince: undefined })
})

test('a service certainly did not accept a request that was not sent or was refused', () => {
  expect([...deliveryStates, undefined].filter(isCertainlyUnaccepted)).toEqual(['not-sent', 'refused'])
})
