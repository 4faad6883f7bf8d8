import fc from 'fast-check'
import { listen } from '../../src/emulator/listen.ts'
import { realTimers } from '../../src/timers.ts'
import type { Exchange } from '../../src/wire/exchange.ts'
import { createFastClock, run } from '../harness/run.ts'
import { afterSent, findMistakes, fromNow, readIds } from '../sessions/follow/judge.ts'
import { type Scenario, sending, taskText, working } from '../sessions/follow/session-scripts.ts'
import { createSessionService, type SessionService } from '../sessions/follow/session-service.ts'

const limits = { lag: 2, late: 2, mute: true, keepsAlive: false }

/** Real time. Waits do not keep the process running. */
const clock = {
  ...realTimers,
  now: realTimers.wallTime,
  wait: (milliseconds: number) =>
    new Promise<void>((resolve) => void setTimeout(resolve, milliseconds).unref()),
}

/** Returns random sessions of this seed, whose agents are fifty times as fast. */
const scenarios = (count: number, seed: number): Scenario[] =>
  fc.sample(fc.oneof(sending(limits), working(limits)), { numRuns: count, seed }).map((scenario) => ({
    ...scenario,
    turn: scenario.turn.map(({ event, after }) => ({ event, after: after / 50 })),
  }))

/** Serves sessions on one port, each under its name, and follows them over the network. */
export async function serveSessions(count: number, seed: number, random: () => number) {
  const services = new Map<string, SessionService>()
  const all = scenarios(count, seed)

  const exchange: Exchange = async (request) => {
    const service = services.get(/sessions\/([^/]+)/.exec(request.url)?.[1] ?? '') as SessionService
    // After the message was sent, some requests get a 503.
    if (request.method === 'GET' && service.posts > 0 && random() < 0.05) return unavailable
    return service.exchange(request)
  }
  const server = await listen({ port: 0, host: '127.0.0.1', exchange, onRequest() {} })

  /** Follows one session. Returns the differences between the output and the events. */
  async function follow(index: number): Promise<string[]> {
    const scenario = all[index] as Scenario
    const service = createSessionService(scenario, clock)
    services.set(`s${index}`, service)
    const isRaw = random() < 0.5
    const hasHistory = !scenario.isSent && random() < 0.5
    const words = scenario.isSent
      ? ['send', taskText, '--follow']
      : ['follow', ...(hasHistory ? ['--history'] : [])]
    const argv = ['events', ...words, '-s', `s${index}`, '--timeout', '10m', ...(isRaw ? ['--raw'] : [])]
    const env = { PARLEY_AGENTS_URL: `http://127.0.0.1:${server.port}` }
    // The clock is five times as fast, and the deadline is never reached.
    const world = { exchange: 'network', env, timers: createFastClock(5) } as const
    const { code, out, err } = await run([...argv, '--deadline', '1h'], world)
    const expected = scenario.isSent ? afterSent(scenario) : fromNow(scenario, service, hasHistory)
    const wrong = [
      ...(code === scenario.code ? [] : [`exit ${code} for ${scenario.code}`]),
      ...(service.posts === Number(scenario.isSent) ? [] : [`${service.posts} POSTs`]),
      ...findMistakes(readIds(out, isRaw, service.ledger), expected, service, scenario.lag),
    ]
    return wrong.length === 0
      ? []
      : [`s${index}: ${wrong.join('; ')}: ${JSON.stringify({ argv, err, scenario })}`]
  }

  return {
    follow,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const unavailable = {
  status: 503,
  statusText: '',
  headers: { 'retry-after': '0', 'content-type': 'application/json' },
  body: (async function* () {})(),
  close() {},
}
