import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { listen } from '../../src/emulator/listen.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createFastClock, run, temporaryFolder } from '../harness/run.ts'
import {
  type AgentService,
  createAgentService,
  type Event,
  type Outcome,
} from '../sessions/run/agent-service.ts'

/** A tool use and the expected reply, by kind. */
const kinds = {
  allowed: { event: { type: 'agent.tool_use', name: 'bash', evaluated_permission: 'ask' }, is: 'allow' },
  denied: { event: { type: 'agent.tool_use', name: 'rm', evaluated_permission: 'ask' }, is: 'deny' },
  threaded: {
    event: { type: 'agent.mcp_tool_use', name: 'bash', mcp_server_name: 'm', session_thread_id: 't9' },
    is: 'allow',
  },
  custom: { event: { type: 'agent.custom_tool_use', name: 'echo' }, is: 'result' },
  refused: { event: { type: 'agent.custom_tool_use', name: 'rm' }, is: 'error' },
  open: { event: { type: 'agent.tool_use', name: 'other', evaluated_permission: 'ask' }, is: 'open' },
  unasked: { event: { type: 'agent.tool_use', name: 'bash', evaluated_permission: 'allow' }, is: 'none' },
  wrong: { event: { type: 'agent.tool_use', name: 'rm', evaluated_permission: 'allow' }, is: 'wrong' },
} as const

type Kind = keyof typeof kinds

const policy = {
  rules: [
    { tool: 'bash', decision: 'allow' },
    { tool: 'bash', server: 'm', decision: 'allow' },
    { tool: 'rm', decision: 'deny', reason: 'never' },
  ],
}

const ends = ['end_turn', 'end_turn', 'end_turn', 'retries_exhausted', 'terminated'] as const

const scenarios = fc.record({
  rounds: fc.array(
    fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom<Kind>('allowed', 'custom') },
        { weight: 2, arbitrary: fc.constantFrom<Kind>('denied', 'threaded', 'refused') },
        { weight: 1, arbitrary: fc.constantFrom<Kind>('open', 'unasked', 'wrong') },
      ),
      { minLength: 1, maxLength: 4 },
    ),
    { maxLength: 3 },
  ),
  end: fc.constantFrom(...ends),
  outcomes: fc.array(
    fc.oneof(
      { weight: 4, arbitrary: fc.constant<Outcome>('takes') },
      { weight: 2, arbitrary: fc.constantFrom<Outcome>('resets', 'fails late', 'cuts', 'limits') },
      { weight: 1, arbitrary: fc.constantFrom<Outcome>('loses', 'fails', 'refuses') },
    ),
    { maxLength: 8 },
  ),
  cuts: fc.array(fc.nat(12), { maxLength: 4 }),
  lag: fc.constantFrom(0, 0, 20, 60),
  echoes: fc.boolean(),
})
type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never

const createToolUse = (kind: Kind, id: string): Event => ({ id, input: { id }, ...kinds[kind].event })

/** Serves agents on one port, each under the name of its session, and runs their tasks over the network. */
export async function serveRuns(count: number, seed: number, random: () => number) {
  const services = new Map<string, AgentService>()
  const all = fc.sample(scenarios, { numRuns: count, seed })
  const exchange: Exchange = async (request) => {
    const service = services.get(/sessions\/([^/]+)/.exec(request.url)?.[1] ?? '') as AgentService
    if (request.method === 'GET' && service.tasks > 0 && random() < 0.05) return unavailable
    return service.exchange(request)
  }
  const server = await listen({ port: 0, host: '127.0.0.1', exchange, onRequest() {} })

  /** Runs one task. Returns the differences between the run's reports and the events. */
  async function work(index: number): Promise<string[]> {
    const scenario = all[index] as Scenario
    const outcomes = [...scenario.outcomes]
    const cuts = [...scenario.cuts]
    const used: Outcome[] = []
    const service = createAgentService({
      rounds: scenario.rounds.map((round, row) =>
        round.map((kind, at) => createToolUse(kind, `${kind}_${row}_${at}`)),
      ),
      end:
        scenario.end === 'terminated'
          ? { type: 'session.status_terminated' }
          : { type: 'session.status_idle', stop_reason: { type: scenario.end } },
      outcome() {
        const outcome = outcomes.shift() ?? 'takes'
        used.push(outcome)
        return outcome
      },
      cut: () => cuts.shift() ?? Infinity,
      lag: scenario.lag,
      echoes: scenario.echoes,
    })
    services.set(`r${index}`, service)
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'p.json'), JSON.stringify(policy))
    const words = [
      '-s',
      `r${index}`,
      '--policy',
      'p.json',
      '--audit',
      'a',
      '--tool',
      'echo=cat',
      '--tool',
      'rm=cat',
    ]
    const { code, err } = await run(['events', 'run', 'go', ...words, '--errors', 'json'], {
      cwd,
      exchange: 'network',
      stdin: '',
      timers: createFastClock(20),
      env: { PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}` },
    })
    const audit = readFileSync(join(cwd, 'a'), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    const wrong = [...judgeEnd(scenario, service, { code, err, used }), ...judgeAnswers(service, audit)]
    return wrong.length === 0
      ? []
      : [`r${index}: ${wrong.join('; ')}: ${JSON.stringify({ code, err, used, scenario })}`]
  }

  return {
    work,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Returns the exit code that a run without lost requests has. */
function getExpectedCode({ rounds, end }: Scenario): number {
  let isDenied = false
  for (const round of rounds) {
    isDenied ||= round.some((kind) => ['deny', 'error', 'wrong'].includes(kinds[kind].is))
    if (round.includes('open')) return 12
  }
  return end === 'end_turn' ? (isDenied ? 14 : 0) : 13
}

function judgeEnd(
  scenario: Scenario,
  { acceptedReplies, tasks }: AgentService,
  { code, err, used }: { code: number; err: string; used: Outcome[] },
): string[] {
  const once = tasks === 1 ? [] : [`${tasks} tasks`]
  if (code === 10) {
    const { pending } = JSON.parse(err.trim().split('\n').at(-1) ?? '{}').error
    const hasLost = used.some((outcome) => outcome === 'loses' || outcome === 'fails')
    return [
      ...once,
      ...(hasLost ? [] : ['10, but nothing was lost']),
      ...pending
        .filter((id: string) => acceptedReplies.has(id))
        .map((id: string) => `${id} arrived, but is reported as unknown`),
    ]
  }
  if (code === 4) return used.at(-1) === 'refuses' ? once : ['4, but nothing was refused']
  const expected = getExpectedCode(scenario)
  const open = scenario.rounds.findIndex((round) => round.includes('open'))
  const reached = open < 0 ? scenario.rounds : scenario.rounds.slice(0, open + 1)
  const wanted = reached.flatMap((round, row) =>
    round.flatMap((kind, at) =>
      ['open', 'none', 'wrong'].includes(kinds[kind].is) ? [] : [`${kind}_${row}_${at}`],
    ),
  )
  return [
    ...once,
    ...(code === expected ? [] : [`exit ${code} for ${expected}`]),
    ...wanted.filter((id) => !acceptedReplies.has(id)).map((id) => `lost: ${id}`),
  ]
}

/** Checks that each reply is sent once, is correct, and is in the audit file. */
function judgeAnswers(
  { acceptedReplies }: AgentService,
  audit: { toolUse: string; event: string; decision?: string }[],
): string[] {
  const findLines = (id: string, event: string) =>
    audit.filter((line) => line.toolUse === id && line.event === event)
  return [...acceptedReplies].flatMap(([id, answers]) => {
    const { is } = kinds[id.split('_')[0] as Kind]
    const [answer] = answers
    const given = answer?.result ?? (answer?.is_error ? 'error' : 'result')
    const decision = is === 'deny' || is === 'error' ? 'deny' : 'allow'
    return [
      ...(answers.length === 1 ? [] : [`twice: ${id}`]),
      ...(given === is ? [] : [`${given} for ${id}`]),
      ...(findLines(id, 'decision').at(-1)?.decision === decision
        ? []
        : [`no decision on ${id} in the audit`]),
      ...(findLines(id, 'sent').length > 0 ? [] : [`${id} is not in the audit`]),
      ...(is === 'result' && findLines(id, 'start').length !== 1
        ? [`the command for ${id} was not started once`]
        : []),
    ]
  })
}

const unavailable = {
  status: 503,
  statusText: '',
  headers: { 'retry-after': '0', 'content-type': 'application/json' },
  body: (async function* () {})(),
  close() {},
}
