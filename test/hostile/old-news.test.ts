import { describe, expect, test } from 'vitest'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createIdleClock } from '../harness/clock.ts'
import { bash, confirms, custom, interrupt } from '../harness/events.ts'
import { readText } from '../harness/run.ts'
import { type Agent, openAgent } from '../harness/session-service.ts'

const clock = createIdleClock()

const resultOfC2 = { type: 'user.custom_tool_result', custom_tool_use_id: 'c2', content: [] }

/** Actions of another client, and the ids of the tool uses to which parley must not reply afterwards. */
const actions: [what: string, ids: string[], act: (service: Agent) => void][] = [
  ['has sent a result', ['c2'], ({ answer }) => answer(resultOfC2)],
  ['has denied a tool use', ['t1'], ({ answer }) => answer(confirms('t1', 'deny'))],
  ['has interrupted the session', ['t1', 'c1', 'c2'], ({ answer }) => answer(interrupt)],
  ['has terminated the session', ['t1', 'c1', 'c2'], ({ add }) => add({ type: 'session.status_terminated' })],
  ['has changed the input of a tool use', ['c2'], ({ add }) => add(custom('c2', { input: { rm: true } }))],
]

interface Scenario {
  ids: string[]
  act(service: Agent): void
  /** Number of responses after which the other client acts, or `in a command` for the first command. */
  when: number | 'in a command'
  /** True if streams show the events that clients post. */
  echoes: boolean
}

/**
 * Runs `events run` with three waiting tool uses, while another client acts once. Returns the number of
 * responses, and the ids of tool uses that wrongly got a reply or a command after the other client's action.
 */
async function runWithOtherClient({ ids, act, when, echoes }: Scenario) {
  // If the stream omits the event, only a list shows it. parley lists again after 1 s, so time must pass.
  let passed = 0
  const timers = { ...clock, now: () => clock.now() + passed, wallTime: () => clock.wallTime() + passed }
  const agent = openAgent({ rounds: [[bash('t1'), custom('c1'), custom('c2')]], echoes, timers })
  agent.write('runs', '')
  const listStarted = () => readText(agent.cwd, 'runs').split('\n').slice(0, -1)
  const wrong: string[] = []
  let startedBefore: string[] | undefined
  const actOnce = () => {
    if (startedBefore || !agent.events.some((event) => 'event_ids' in Object(event.stop_reason))) return
    startedBefore = listStarted()
    if (!echoes) passed = 2_000
    act(agent)
    agent.write('acted', '')
  }
  let responses = 0
  const exchange: Exchange = async (request, onSent) => {
    const text = startedBefore && request.method === 'POST' ? Buffer.from(request.body ?? []).toString() : ''
    wrong.push(...ids.filter((id) => text.includes(`_id":"${id}"`)))
    const response = await agent.exchange(request, onSent)
    if (++responses === when) actOnce()
    return response
  }
  const wait = when === 'in a command' ? '; until [ -e acted ]; do sleep 0.01; done' : ''
  const tool = `count=echo $PARLEY_TOOL_USE_ID >> runs${wait}`
  const ended = agent.runTask(['go', '--tool', tool, '--deadline', '10m'], { exchange })
  if (when === 'in a command') {
    while (listStarted().length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    actOnce()
  }
  const { err } = await ended
  const startedLater = listStarted().slice(startedBefore?.length ?? Infinity)
  wrong.push(...startedLater.filter((id) => ids.includes(id)))
  return { err, wrong, audit: agent.audit(), responses }
}

describe.each(actions)('events run after another client %s (needs sh)', (what, ids, act) => {
  describe.each([
    [true, ''],
    [false, ', even if the stream omits this event'],
  ])('stream that shows the event: %s', (echoes, omitted) => {
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
