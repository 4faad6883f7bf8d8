import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  applyReplyAuditLine,
  getNextReplyStep,
  type ReplyAuditLine,
  type ReplyState,
  resumeReplyState,
  updateUnconfirmedReply,
} from '../../../src/sessions/running/reply-state.ts'
import { scaleRuns } from '../../harness/property-runs.ts'

/** Maximum error of the service's clock, time until a request arrives, and lag of lists. */
const [skewMs, flightMs, lagMs] = [29_000, 900, 4_000]

type ListEvidence = Parameters<typeof updateUnconfirmedReply>[1]

type Entry = { at: number } & ({ is: 'idle'; id: string; isListed: boolean } | { is: 'reply' })

interface Kind {
  /** Milliseconds that the service's clock is ahead. */
  ahead: number
  /** Lists never show a reply. With such lists, nothing lags, and a request arrives at once or never. */
  isHiding: boolean
}

/** Creates a service that waits for one tool use and records the accepted replies. */
function createService({ ahead, isHiding }: Kind) {
  const log: Entry[] = []
  const arriving: number[] = []
  const isAnswered = () => log.some(({ is }) => is === 'reply')
  return {
    becomeIdle(at: number) {
      log.push({ is: 'idle', id: `r${log.length}`, at, isListed: !isAnswered() })
    },
    send: (at: number) => void arriving.push(at),
    /** Accepts the requests that arrived until `now`. */
    acceptArrived(now: number) {
      for (const at of arriving.splice(0).sort((one, other) => one - other))
        if (at <= now) log.push({ is: 'reply', at })
        else arriving.push(at)
      log.sort((one, other) => one.at - other.at)
    },
    get acceptedReplies() {
      return log.filter(({ is }) => is === 'reply').length
    },
    list(until: number): ListEvidence & { isAnswered: boolean } {
      const shown = log.filter(({ at }) => at <= until)
      const idleEvents = shown.flatMap((entry) => (entry.is === 'idle' ? [entry] : []))
      return {
        isAnswered: !isHiding && shown.some(({ is }) => is === 'reply'),
        isListed: idleEvents.at(-1)?.isListed ?? false,
        showsClients: !isHiding,
        idleEvents: new Set(idleEvents.map(({ id }) => id)),
        idleAt: (idleEvents.at(-1)?.at ?? Number.NaN) + ahead,
      }
    },
  }
}

const action = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('reply' as const),
      /** Outcome that the run records, or a kill before the run records it. */
      ends: fc.constantFrom('accepted', 'refused', 'unknown', 'unknown', 'killed'),
      isLost: fc.boolean(),
      takes: fc.constantFrom(0, flightMs),
      lag: fc.constantFrom(0, lagMs),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('list' as const), lag: fc.constantFrom(0, lagMs) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), lag: fc.constantFrom(0, lagMs) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('idle' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), time: fc.constantFrom(500, 6_000, 40_000) }),
  },
)

const kinds = fc.record({ ahead: fc.constantFrom(-skewMs, 0, skewMs), isHiding: fc.boolean() })

test('a service accepts a reply at most once, although runs are killed, requests are lost and lists lag', () => {
  fc.assert(
    fc.property(kinds, fc.array(action, { minLength: 4, maxLength: 24 }), (kind, actions) => {
      const service = createService(kind)
      const late = (time: number) => (kind.isHiding ? 0 : time)
      const lines: ReplyAuditLine[] = []
      let now = 1_000_000
      let reply: ReplyState = { is: 'deciding' }
      service.becomeIdle(now)
      let seen = service.list(now)
      const write = (line: ReplyAuditLine) => {
        lines.push(line)
        reply = applyReplyAuditLine(reply, line)
      }
      /** Starts a new run, which reads the audit lines and a list. */
      const begin = (behind: number) => {
        seen = service.list(now - behind)
        const start: ReplyState = { is: 'deciding' }
        reply = resumeReplyState(lines.reduce(applyReplyAuditLine, start), seen.idleEvents)
      }
      for (const each of actions) {
        now++
        service.acceptArrived(now)
        if (each.do === 'wait') now += each.time
        if (each.do === 'idle') service.becomeIdle(now)
        if (each.do === 'kill') begin(late(each.lag))
        if (each.do === 'list' && reply.is === 'unconfirmed') {
          const list = service.list(now - late(each.lag))
          if (list.isAnswered) write({ event: 'accepted' })
          else reply = updateUnconfirmedReply(reply, list, now)
          seen = { ...list, idleEvents: new Set([...seen.idleEvents, ...list.idleEvents]) }
        }
        // A run replies only to tool uses that the last idle event lists.
        const isDue =
          ['decide', 'post'].includes(getNextReplyStep(reply) ?? '') && seen.isListed && !seen.isAnswered
        if (each.do !== 'reply' || !isDue) continue
        const last = [...seen.idleEvents].at(-1)
        write({ event: 'sent', sent: { at: now, idleEvents: new Set(last === undefined ? [] : [last]) } })
        if (each.ends === 'accepted' || (each.ends !== 'refused' && !each.isLost))
          service.send(now + late(each.takes))
        if (each.ends !== 'killed') {
          if (each.ends === 'accepted') now += late(each.takes)
          service.acceptArrived(now)
          write({ event: each.ends })
        } else begin(late(each.lag))
      }
      service.acceptArrived(Infinity)
      expect(service.acceptedReplies).toBeLessThanOrEqual(1)
    }),
    scaleRuns(20_000),
  )
})
