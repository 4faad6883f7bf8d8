import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { run, temporaryFolder } from '../harness/run.ts'
import { type AgentService, createAgentService, type Event } from '../sessions/run/agent-service.ts'

/** Clock of the run, the other client and the service. */
const clock = createIdleClock()

const custom = (id: string, input: object = {}): Event => ({
  id,
  type: 'agent.custom_tool_use',
  name: 'count',
  input,
})
const bash = (id: string): Event => ({
  id,
  type: 'agent.tool_use',
  name: 'bash',
  input: {},
  evaluated_permission: 'ask',
})

/** Actions of the other client, and the tool uses that must not be answered or run afterwards. */
const actions: [what: string, ids: string[], act: (service: AgentService) => void][] = [
  [
    'gives a result',
    ['c2'],
    ({ answer }) => answer({ type: 'user.custom_tool_result', custom_tool_use_id: 'c2', content: [] }),
  ],
  [
    'denies a tool use',
    ['t1'],
    ({ answer }) => answer({ type: 'user.tool_confirmation', tool_use_id: 't1', result: 'deny' }),
  ],
  ['interrupts the session', ['t1', 'c1', 'c2'], ({ answer }) => answer({ type: 'user.interrupt' })],
  ['terminates the session', ['t1', 'c1', 'c2'], ({ add }) => add({ type: 'session.status_terminated' })],
  ['is shown another input of a tool use', ['c2'], ({ add }) => add(custom('c2', { rm: true }))],
]

interface Outcome {
  code: number
  err: string
  /** Replies and commands for tool uses that no longer waited. */
  wrong: string[]
  audit: { toolUse: string | null; event: string; reason?: string }[]
  /** Number of responses that the run has received. */
  answers: number
}

interface Scenario {
  ids: string[]
  act(service: AgentService): void
  /** Number of responses after which the other client acts, or `in a command` for the first command. */
  when: number | 'in a command'
  /** True if streams show events of clients. */
  echoes: boolean
}

/** Runs parley with three waiting tool uses while another client acts once. */
async function runBeside({ ids, act, when, echoes }: Scenario): Promise<Outcome> {
  // If a stream omits the other client's event, a list shows it after a second.
  let passed = 0
  const timers = { ...clock, now: () => clock.now() + passed, wallTime: () => clock.wallTime() + passed }
  const service = createAgentService({
    rounds: [[bash('t1'), custom('c1'), custom('c2')]],
    echoes,
    timers,
  })
  const cwd = temporaryFolder()
  const startedCommands = () =>
    existsSync(join(cwd, 'runs')) ? readFileSync(join(cwd, 'runs'), 'utf8').trim().split('\n') : []
  const wrong: string[] = []
  let known: string[] | undefined
  const actOnce = () => {
    const isAsked = service.events.some(
      (event) => event.stop_reason && 'event_ids' in Object(event.stop_reason),
    )
    if (known || !isAsked) return
    known = startedCommands()
    if (!echoes) passed = 2_000
    act(service)
    writeFileSync(join(cwd, 'acted'), '')
  }
  let answers = 0
  const exchange: Exchange = async (request, onSent) => {
    const text = Buffer.from(request.body ?? []).toString()
    if (known && request.method === 'POST') wrong.push(...ids.filter((id) => text.includes(`_id":"${id}"`)))
    const response = await service.exchange(request, onSent)
    if (++answers === when) actOnce()
    return response
  }
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  const wait = when === 'in a command' ? '; until [ -e acted ]; do sleep 0.01; done' : ''
  const tool = `count=echo $PARLEY_TOOL_USE_ID >> runs${wait}`
  const argv = ['events', 'run', 'go', '-s', 's1', '--no-stdin', '--policy', 'p.json', '--tool', tool]
  const ended = run([...argv, '--audit', 'a.ndjson', '--deadline', '10m'], { cwd, timers, exchange })
  if (when === 'in a command') {
    while (startedCommands().length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    actOnce()
  }
  const { code, err } = await ended
  const late = startedCommands().slice(known?.length ?? Infinity)
  wrong.push(...late.filter((id) => ids.includes(id)).map((id) => `${id} was carried out`))
  const lines = readFileSync(join(cwd, 'a.ndjson'), 'utf8').trimEnd().split('\n')
  return { code, err, wrong, audit: lines.map((line) => JSON.parse(line)), answers }
}

describe.each(actions)('another client that %s', (_, ids, act) => {
  describe.each([true, false])('session whose streams show events of clients: %s', (echoes) => {
    test('events run neither answers nor runs a tool use that another client has ended at any point (needs sh)', async () => {
      // Each kind of stream tries other points.
      for (let when = echoes ? 1 : 3, answers = when; when <= answers; when += 4) {
        const ended = await runBeside({ ids, act, when, echoes })
        expect({ when, wrong: ended.wrong }, ended.err).toEqual({ when, wrong: [] })
        answers = Math.min(ended.answers, 20)
      }
    })

    test('events run ignores tool uses that another client ends during a command, and the audit file says so (needs sh)', async () => {
      const { wrong, audit, err } = await runBeside({ ids, act, when: 'in a command', echoes })
      expect(wrong, err).toEqual([])
      const left = audit.filter(({ event }) => event === 'answered-elsewhere')
      // The run answered the first tool use itself.
      if (!ids.includes('t1') || ids.length > 1) expect(left.map(({ toolUse }) => toolUse)).toContain('c2')
      for (const { toolUse, reason } of left)
        expect(err).toMatch(
          new RegExp(`${toolUse} is not answered by this run: ${reason}(; its command has run)?\n`),
        )
    })
  })
})
