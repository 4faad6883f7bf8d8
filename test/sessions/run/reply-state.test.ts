import { expect, test } from 'vitest'
import { deliveryStates, isCertainlyUnaccepted } from '../../../src/delivery-state.ts'
import type { ReplyAuditLine, ReplyState } from '../../../src/sessions/running/reply-state.ts'
import {
  applyReplyAuditLine,
  getNextReplyStep,
  identifyAnswer,
  resumeReplyState,
  updateUnconfirmedReply,
} from '../../../src/sessions/running/reply-state.ts'
import { type Answer, computeDigest } from '../../../src/sessions/session-state.ts'

type UnconfirmedReply = Parameters<typeof updateUnconfirmedReply>[0]
type ListEvidence = Parameters<typeof updateUnconfirmedReply>[1]

const result = { text: 'out', isError: false }
const interrupted = { text: 'interrupted, effect unknown', isError: true }
const sent = { sentAtMs: 1_000_000, lastIdleEvent: 'r1' }

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

/** Returns the name of a reply's state, and in parentheses the result of the tool's command if there is one. */
const describeReply = (reply: ReplyState) => (reply.result ? `${reply.is} (${reply.result.text})` : reply.is)

/**
 * Returns the next state of each reply state after an audit line that keeps the result of the command.
 * `withResult` is the next state of a reply that has a result.
 */
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

const mapStates = <T>(act: (state: ReplyState) => T) =>
  Object.fromEntries(names.map((name) => [name, act(states[name])])) as Record<Named, T>

const all = (name: string) => mapStates(() => name)

test.each<[keyof typeof lines, Record<Named, string>]>([
  ['decision', changes('deciding', 'has-result')],
  ['decision without a reply', all('left-open')],
  ['start', all('executing')],
  ['end', all('has-result (out)')],
  ['sent', changes('posting')],
  ['accepted', changes('closed')],
  [
    'answered-elsewhere',
    {
      ...changes('closed'),
      deciding: 'deciding',
      'left-open': 'deciding',
      executing: `has-result (${interrupted.text})`,
      'has-result': 'has-result (out)',
    },
  ],
  ['refused', changes('deciding', 'has-result')],
  ['unknown', changes('unconfirmed')],
])('a reply in any state gets its documented next state after the audit line "%s"', (line, after) => {
  expect(mapStates((state) => describeReply(applyReplyAuditLine(state, lines[line])))).toEqual(after)
})

test('a reply in any state gets its documented next state when a run resumes', () => {
  const idleEvents = new Set(['r1', 'r2'])
  const isUnconfirmed = { is: 'unconfirmed', sent, olderIdleEvents: idleEvents }
  expect(mapStates((state) => resumeReplyState(state, idleEvents))).toEqual({
    deciding: { is: 'deciding' },
    'left-open': { is: 'deciding' },
    executing: { is: 'has-result', result: interrupted },
    'has-result': { is: 'has-result', result },
    posting: isUnconfirmed,
    'posting a result': { ...isUnconfirmed, result },
    unconfirmed: isUnconfirmed,
    'unconfirmed result': { ...isUnconfirmed, result },
    closed: isUnconfirmed,
  })
})

test('getNextReplyStep returns "decide" if deciding, "post" with a result, "poll" if unconfirmed, otherwise undefined', () => {
  const steps = {
    deciding: 'decide',
    'left-open': undefined,
    executing: undefined,
    'has-result': 'post',
    posting: undefined,
    'posting a result': undefined,
    unconfirmed: 'poll',
    'unconfirmed result': 'poll',
    closed: undefined,
  }
  expect(mapStates((reply) => getNextReplyStep(reply))).toEqual(steps)
  // The session waits for the result of a tool use that was confirmed.
  const withNeed = { ...steps, unconfirmed: 'decide', closed: 'decide' }
  expect(mapStates((reply) => getNextReplyStep(reply, true))).toEqual(withNeed)
})

const answer = { isReply: true, isShown: true, isResult: false, decision: undefined }
const [ours, others] = [computeDigest('out'), computeDigest('other')]

test.each<[Named, string, Partial<Answer> | undefined, string | undefined]>([
  ['unconfirmed', 'no answer', undefined, undefined],
  ['unconfirmed', 'our confirmation', { decision: 'allow' }, 'ours'],
  ['unconfirmed', 'another confirmation', { decision: 'deny' }, 'it already has the answer deny'],
  ['unconfirmed', 'a result', { isResult: true, clientResults: [others] }, 'ours'],
  ['unconfirmed result', 'a confirmation', { decision: 'deny' }, undefined],
  ['unconfirmed result', 'our result', { isResult: true, clientResults: [others, ours] }, 'ours'],
  ['unconfirmed result', 'a result without a text', { isResult: true }, 'ours'],
  [
    'unconfirmed result',
    'another result',
    { isResult: true, clientResults: [others] },
    'it already has another result',
  ],
])('identifyAnswer compares a reply in the state "%s" with %s', (name, _, shown, expected) => {
  expect(identifyAnswer(states[name], shown && { ...answer, ...shown }, 'allow')).toBe(expected)
})

const second = 1000
const before = new Set(['r1', 'r2'])
const unconfirmed: UnconfirmedReply = { is: 'unconfirmed', sent, olderIdleEvents: before }
const shown = (more: Partial<ListEvidence>): ListEvidence => ({
  isListed: true,
  showsClientEvents: false,
  idleEvents: new Set(['r1', 'r2', 'r3']),
  ...more,
})
const known = { idleEvents: before }
const onlyKnown = { idleEvents: new Set(['r1']) }
const soon = sent.sentAtMs + second

const withClients = { ...known, showsClientEvents: true }
const ageless = { waitingSince: 0 }
const first = { olderIdleEvents: undefined }
const unlisted = { isListed: false }
const worksAgain = { isListed: undefined }
const sentAt = (lastIdleEvent?: string) => ({ ...first, sent: { ...sent, lastIdleEvent } })
const lagging = { ...unlisted, idleEvents: new Set(['r0']) }
const past = { olderIdleEvents: new Set(['r0', 'r1', 'r2']) }

type Row = [Partial<UnconfirmedReply>, Partial<ListEvidence>, secondsAfterReply?: number]
const rows: Record<string, Record<string, Row>> = {
  unconfirmed: {
    'has no idle event': [ageless, { idleEvents: new Set() }],
    'has no newer idle event': [ageless, known],
    'is the first after the reply, so its idle events may be older': [first, {}],
    'has a newer idle event with the tool use for the first time': [{}, {}],
    'has shown a newer idle event for less than 5 s': [{ waitingSince: soon }, {}, 5],
    "has clients' events, and a new idle event for 29 s": [{ waitingSince: 1_000_000 }, withClients, 29],
    'has only the known idle event, without the tool use': [first, { ...unlisted, ...onlyKnown }],
    'has a new idle event without the tool use, but omits the known idle event': [sentAt('r0'), unlisted],
    'has an idle event without the tool use, but had none at the reply': [sentAt(), unlisted],
    'lags behind the known idle event': [past, lagging],
    'has a newer idle event, then an event of work': [{ waitingSince: soon }, { isListed: undefined }, 61],
  },
  'has-result (out)': {
    'has shown a newer idle event for 5 s after a result': [{ waitingSince: soon, result }, {}, 6],
  },
  deciding: {
    "has clients' events, and a new idle event for 30 s": [{ waitingSince: 1_000_000 }, withClients, 30],
  },
  closed: {
    'has a newer idle event without the tool use': [{}, unlisted],
    'is the first after the reply, and has a new idle event without the tool use': [first, unlisted],
  },
}
test.each(
  Object.entries(rows).flatMap(([state, table]) =>
    Object.entries(table).map(([what, row]) => [what, state, row] as const),
  ),
)('if a list %s, a reply of unknown delivery gets the state "%s"', (_, state, [reply, list, seconds = 1]) => {
  const nowMs = sent.sentAtMs + seconds * second
  const next = updateUnconfirmedReply({ ...unconfirmed, ...reply }, shown(list), nowMs)
  expect(describeReply(next)).toBe(state)
})

test('if a reply was sent at an unknown time, only an idle event after the first list changes its state to "closed"', () => {
  const reply = applyReplyAuditLine(states.deciding, lines.unknown)
  const unknown = resumeReplyState(reply, before) as UnconfirmedReply
  expect(updateUnconfirmedReply(unknown, shown(known), Number.MAX_SAFE_INTEGER).is).toBe('unconfirmed')
  expect(updateUnconfirmedReply(unknown, shown({ isListed: false }), soon).is).toBe('closed')
})

test('an unconfirmed reply stores when a list first showed that the session still waits for a reply', () => {
  expect(updateUnconfirmedReply(unconfirmed, shown({}), soon)).toMatchObject({ waitingSince: soon })
  const first = updateUnconfirmedReply({ ...unconfirmed, olderIdleEvents: undefined }, shown({}), soon)
  expect(first).toMatchObject({ olderIdleEvents: new Set(['r1', 'r2', 'r3']) })
  const worked = updateUnconfirmedReply({ ...unconfirmed, ...ageless }, shown(worksAgain), soon)
  expect(worked).toMatchObject({ waitingSince: undefined })
})

test('a service certainly did not accept a request that was not sent or was refused', () => {
  expect([...deliveryStates, undefined].filter(isCertainlyUnaccepted)).toEqual(['not-sent', 'refused'])
})

test.each<[(keyof typeof lines)[], ReplyState['is']]>([
  [['decision', 'answered-elsewhere'], 'deciding'],
  [['start', 'end', 'answered-elsewhere'], 'has-result'],
  [['accepted'], 'unconfirmed'],
  [['sent', 'accepted'], 'unconfirmed'],
  [['sent', 'unknown', 'answered-elsewhere'], 'unconfirmed'],
  [['sent', 'refused', 'sent', 'answered-elsewhere'], 'unconfirmed'],
])('a resumed run with the audit lines %j has the reply state %s', (given, expected) => {
  const reply = given.reduce<ReplyState>(
    (state, name) => applyReplyAuditLine(state, lines[name]),
    states.deciding,
  )
  expect(resumeReplyState(reply, new Set()).is).toBe(expected)
})
