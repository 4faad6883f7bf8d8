import type { SendEvents } from '../wire/events/send-events.ts'
import type { SessionEvent } from '../wire/events/session-event.ts'
import { startOf } from '../wire/text-start.ts'
import { randomId } from './random.ts'

type Parameters = SendEvents['events'][number]

/** An emulated session: the events so far, whoever listens, and an agent that reacts. */
export interface Session {
  readonly events: readonly SessionEvent[]
  /** Takes events in, in their order, and returns them as accepted. The agent reacts a moment later. */
  accept(parameters: readonly Parameters[]): SessionEvent[]
  /** Calls `listener` for each event from now on; returns what ends that. */
  listen(listener: (event: SessionEvent) => void): () => void
}

export interface SessionOptions {
  random: () => number
  /** Milliseconds between two events of the agent. */
  delay: number
}

const tools = [
  { name: 'bash', input: { command: 'ls -l' } },
  { name: 'web_search', input: { query: 'parley' } },
]

export function createSession({ random, delay }: SessionOptions): Session {
  const events: SessionEvent[] = []
  const listeners = new Set<(event: SessionEvent) => void>()
  let waitingFor: string[] = []
  let queue: (() => void)[] = []

  function add(type: string, fields: object = {}): SessionEvent {
    const prefix = type.endsWith('tool_use') ? 'toolu' : 'sevt'
    const event = { id: randomId(prefix, random), type, processed_at: new Date().toISOString(), ...fields }
    events.push(event)
    for (const listener of listeners) listener(event)
    return event
  }

  /** Things that the agent does one after the other, each a moment later, unless it is interrupted. */
  function later(...actions: (() => void)[]): void {
    const isResting = queue.length === 0
    queue.push(...actions)
    if (isResting) next()
  }

  function next(): void {
    const step = () => {
      queue[0]?.()
      queue.shift()
      if (queue.length > 0) next()
    }
    if (delay > 0) setTimeout(step, delay)
    else setImmediate(step)
  }

  const idle = (type: string, fields: object = {}) =>
    add('session.status_idle', { stop_reason: { type, ...fields } })
  /** The turn ends when nothing more is to be done. */
  const endTurn = () => void (queue.length === 1 && idle('end_turn'))
  const say = (text: string) => add('agent.message', { content: [{ type: 'text', text }] })

  function work(text: string): void {
    const count = /\btwo tools\b/i.test(text) ? 2 : /\b(a|one) tool\b/i.test(text) ? 1 : 0
    later(() => add('session.status_running'))
    if (count === 0) {
      later(() => say(`The emulated agent read “${startOf(text, 80)}”, and has nothing to do.`), endTurn)
      return
    }
    later(() => say('The emulated agent wants to use a tool.'))
    for (const tool of tools.slice(0, count))
      later(() => waitingFor.push(add('agent.tool_use', tool).id ?? ''))
    later(() => idle('requires_action', { event_ids: [...waitingFor] }))
  }

  function answer(id: string, verdict: string): void {
    waitingFor = waitingFor.filter((waiting) => waiting !== id)
    if (verdict !== 'allow') return
    const content = [{ type: 'text', text: 'emulated output' }]
    later(() => add('agent.tool_result', { tool_use_id: id, content }))
  }

  /** Goes on after answers, however many came at once. */
  function goOn(): void {
    later(() => {
      if (waitingFor.length > 0) idle('requires_action', { event_ids: [...waitingFor] })
      else {
        say('The emulated agent is done.')
        endTurn()
      }
    })
  }

  function react(event: SessionEvent): void {
    if (event.type === 'user.message') work(textOf(event))
    else if (event.type === 'user.define_outcome') work(String(event.description ?? ''))
    else if (event.type === 'user.tool_confirmation') answer(String(event.tool_use_id), String(event.result))
    else if (event.type === 'user.tool_result') answer(String(event.tool_use_id), 'given')
    else if (event.type === 'user.custom_tool_result') answer(String(event.custom_tool_use_id), 'given')
    else if (event.type === 'user.interrupt') {
      // Where the agent rests, and waits for nothing, there is nothing to interrupt.
      if (queue.length === 0 && waitingFor.length === 0) return
      queue = queue.slice(0, 1)
      waitingFor = []
      later(endTurn)
    }
  }

  return {
    events,
    accept(parameters) {
      if (parameters.some(({ type }) => isAnswer(type))) later(() => add('session.status_running'))
      const accepted = parameters.map((parameter) => {
        const extra = parameter.type === 'user.define_outcome' ? { outcome_id: randomId('outc', random) } : {}
        const event = add(parameter.type, { ...parameter, ...extra })
        react(event)
        return event
      })
      if (parameters.some(({ type }) => isAnswer(type))) goOn()
      return accepted
    },
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

const isAnswer = (type: string) => /_result$|_confirmation$/.test(type)

function textOf({ content }: SessionEvent): string {
  return Array.isArray(content) ? content.map((block) => block?.text ?? '').join(' ') : ''
}
