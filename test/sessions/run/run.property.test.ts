import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bash, custom } from '../../harness/events.ts'
import { scaleRuns } from '../../harness/property-runs.ts'
import { readError } from '../../harness/run.ts'
import { type Outcome, openAgent } from '../../harness/session-service.ts'

const policy = {
  rules: [
    { tool: 'bash', decision: 'allow' },
    { tool: 'bash', server: 'm', decision: 'allow' },
    { tool: 'rm', decision: 'deny', reason: 'never' },
  ],
}

/**
 * Creates one tool use per case. The key names the reply that parley should give, or the special case.
 */
const uses = {
  allow: (id: string) => bash(id),
  deny: (id: string) => bash(id, { name: 'rm' }),
  mcp: (id: string) =>
    bash(id, { type: 'agent.mcp_tool_use', mcp_server_name: 'm', session_thread_id: 't9' }),
  result: (id: string) => custom(id, { name: 'echo' }),
  error: (id: string) => custom(id, { name: 'rm' }),
  open: (id: string) => bash(id, { name: 'other' }),
  allowedByService: (id: string) => bash(id, { evaluated_permission: 'allow' }),
  deniedButRan: (id: string) => bash(id, { name: 'rm', evaluated_permission: 'allow' }),
}
type Kind = keyof typeof uses
const getKind = (id: string) => id.split('_')[0] as Kind
const denials: readonly Kind[] = ['deny', 'error', 'deniedButRan']
const unanswered: readonly Kind[] = ['open', 'allowedByService', 'deniedButRan']

const scenarios = fc.record({
  rounds: fc.array(
    fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom<Kind>('allow', 'result') },
        { weight: 2, arbitrary: fc.constantFrom<Kind>('deny', 'mcp', 'error') },
        { weight: 1, arbitrary: fc.constantFrom<Kind>(...unanswered) },
      ),
      { minLength: 1, maxLength: 4 },
    ),
    { maxLength: 3 },
  ),
  end: fc.constantFrom('end_turn', 'end_turn', 'retries_exhausted'),
  outcomes: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant<Outcome>('takes') },
      { weight: 2, arbitrary: fc.constantFrom<Outcome>('resets', 'fails late', 'cuts', 'limits') },
      { weight: 1, arbitrary: fc.constantFrom<Outcome>('loses', 'fails', 'refuses') },
    ),
    { maxLength: 8 },
  ),
  cuts: fc.array(fc.nat(12), { maxLength: 4 }),
  lag: fc.constantFrom(0, 400, 1200),
  echoes: fc.boolean(),
})

test('events run replies to each tool use once and as the policy decides, although posts fail and streams are cut', async () => {
  await fc.assert(
    fc.asyncProperty(scenarios, async ({ rounds, end, outcomes, cuts, lag, echoes }) => {
      const used: Outcome[] = []
      const left = [...cuts]
      const ids = rounds.map((round, row) => round.map((kind, at) => `${kind}_${row}_${at}`))
      const agent = openAgent({
        policy,
        rounds: ids.map((round) => round.map((id) => uses[getKind(id)](id))),
        end: { type: 'session.status_idle', stop_reason: { type: end } },
        outcome() {
          used.push(outcomes[used.length] ?? 'takes')
          return used.at(-1) as Outcome
        },
        cut: () => left.shift() ?? Infinity,
        lag,
        echoes,
      })
      const flags = ['--tool', 'echo=cat', '--tool', 'rm=cat', '--retries', '8', '--errors', 'json']
      const { code, err } = await agent.runTask(['go', ...flags])
      expect(agent.tasks, err).toBe(1)

      const audit = agent.audit()
      const openRound = rounds.findIndex((round) => round.includes('open')) + 1
      const reached = ids.slice(0, openRound || undefined).flat()
      for (const [id, replies] of agent.acceptedReplies) {
        const [reply] = replies
        const events = audit.filter(({ toolUse }) => toolUse === id).map(({ event }) => event)
        const expected = getKind(id) === 'mcp' ? 'allow' : getKind(id)
        const outcome = reply?.result ?? (reply?.is_error ? 'error' : 'result')
        expect([id, replies.length, outcome]).toEqual([id, 1, expected])
        expect(events).toEqual(expect.arrayContaining(['decision', 'sent']))
        expect(events.filter((event) => event === 'start')).toHaveLength(expected === 'result' ? 1 : 0)
      }

      if (code === 10) {
        // Only a reply that the service did not accept may stay unconfirmed.
        const { pending } = readError(err)
        expect(used.some((outcome) => outcome === 'loses' || outcome === 'fails')).toBe(true)
        expect(pending.filter((id: string) => agent.acceptedReplies.has(id))).toEqual([])
      } else if (code === 4) expect(used.at(-1)).toBe('refuses')
      else {
        const isOpen = reached.some((id) => getKind(id) === 'open')
        const isDenied = reached.some((id) => denials.includes(getKind(id)))
        expect(code, err).toBe(isOpen ? 12 : end !== 'end_turn' ? 13 : isDenied ? 14 : 0)
        const answered = reached.filter((id) => !unanswered.includes(getKind(id)))
        expect([...agent.acceptedReplies.keys()].toSorted()).toEqual(answered.toSorted())
      }
    }),
    scaleRuns(150),
  )
}, 600_000)
