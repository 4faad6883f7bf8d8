import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { bash, confirms, custom, interrupt } from '../harness/events.ts'
import { parseLines, readText, run, temporaryFolder } from '../harness/run.ts'
import type { AgentService } from '../harness/session-service.ts'
import { createAgentService } from '../harness/session-service.ts'

const clock = createIdleClock()

const resultOfC2 = { type: 'user.custom_tool_result', custom_tool_use_id: 'c2', content: [] }

/** Actions of another client, and the ids of the tool uses to which parley must not reply afterwards. */
const actions: [what: string, ids: string[], act: (service: AgentService) => void][] = [
  ['has sent a result', ['c2'], ({ answer }) => answer(resultOfC2)],
  ['has denied a tool use', ['t1'], ({ answer }) => answer(confirms('t1', 'deny'))],
  ['has interrupted the session', ['t1', 'c1', 'c2'], ({ answer }) => answer(interrupt)],
  ['has terminated the session', ['t1', 'c1', 'c2'], ({ add }) => add({ type: 'session.status_terminated' })],
  ['has changed the input of a tool use', ['c2'], ({ add }) => add(custom('c2', { input: { rm: true } }))],
]

interface Outcome {
  code: number
  err: string
  /** Ids of tool uses that got a reply or a command after the other client's action. */
  wrong: string[]
  audit: { toolUse: string | null; event: string; reason?: string }[]
  /** Number of responses that the run received. */
  responses: number
}

interface Scenario {
  ids: string[]
  act(service: AgentService): void
  /** Number of responses after which the other client acts, or `in a command` for the first command. */
  when: number | 'in a command'
  /** True if streams show the events that clients post. */
  echoes: boolean
}

/** Runs `events run` with three waiting tool uses, while another client acts once. */
async function runWithOtherClient({ ids, act, when, echoes }: Scenario): Promise<Outcome> {
  // If the stream omits the event, only a list shows it. parley lists again after 1 s, so time must pass.
  let passed = 0
  const timers = { ...clock, now: () => clock.now() + passed, wallTime: () => clock.wallTime() + passed }
  const service = createAgentService({ rounds: [[bash('t1'), custom('c1'), custom('c2')]], echoes, timers })
  const cwd = temporaryFolder()
  const listStarted = () => (existsSync(join(cwd, 'runs')) ? readText(cwd, 'runs').trim().split('\n') : [])
  const wrong: string[] = []
  let startedBefore: string[] | undefined
  const actOnce = () => {
    if (startedBefore || !service.events.some((event) => 'event_ids' in Object(event.stop_reason))) return
    startedBefore = listStarted()
    if (!echoes) passed = 2_000
    act(service)
    writeFileSync(join(cwd, 'acted'), '')
  }
  let responses = 0
  const exchange: Exchange = async (request, onSent) => {
    const text = startedBefore && request.method === 'POST' ? Buffer.from(request.body ?? []).toString() : ''
    wrong.push(...ids.filter((id) => text.includes(`_id":"${id}"`)))
    const response = await service.exchange(request, onSent)
    if (++responses === when) actOnce()
    return response
  }
  writeFileSync(join(cwd, 'p.json'), '{"rules":[],"default":{"decision":"allow"}}')
  const wait = when === 'in a command' ? '; until [ -e acted ]; do sleep 0.01; done' : ''
  const tool = `count=echo $PARLEY_TOOL_USE_ID >> runs${wait}`
  const argv = ['events', 'run', 'go', '-s', 's1', '--no-stdin', '--policy', 'p.json', '--tool', tool]
  const ended = run([...argv, '--audit', 'a.ndjson', '--deadline', '10m'], { cwd, timers, exchange })
  if (when === 'in a command') {
    while (listStarted().length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    actOnce()
  }
  const { code, err } = await ended
  const startedLater = listStarted().slice(startedBefore?.length ?? Infinity)
  wrong.push(...startedLater.filter((id) => ids.includes(id)))
  return { code, err, wrong, audit: parseLines(readText(cwd, 'a.ndjson')), responses }
}

describe.each(actions)('events run after another client %s (needs sh)', (what, ids, act) => {
  describe.each([
    ['shows', ''],
    ['omits', ', even if the stream omits this event'],
  ])('stream that %s the event', (verb, omitted) => {
    const echoes = verb === 'shows'
    test(`events run sends no reply and runs no command after another client ${what}${omitted}`, async () => {
      // The other client acts after response 1, 5, 9, ... or, if the stream omits the event, 3, 7, 11, ...
      for (let when = echoes ? 1 : 3, responses = when; when <= responses; when += 4) {
        const ended = await runWithOtherClient({ ids, act, when, echoes })
        expect({ when, wrong: ended.wrong }, ended.err).toEqual({ when, wrong: [] })
        responses = Math.min(ended.responses, 20)
      }
    })

    test(`events run records answered-elsewhere in the audit file if another client ${what} during a command${omitted}`, async () => {
      const { wrong, audit, err } = await runWithOtherClient({ ids, act, when: 'in a command', echoes })
      expect(wrong, err).toEqual([])
      const left = audit.filter(({ event }) => event === 'answered-elsewhere')
      // The run replied to t1 before it started the command, so another client's denial of t1 has no effect.
      if (!ids.includes('t1') || ids.length > 1) expect(left.map(({ toolUse }) => toolUse)).toContain('c2')
      for (const { toolUse, reason } of left)
        expect(err).toMatch(`${toolUse} is not answered by this run: ${reason}`)
    })
  })
})
