import type { SessionEvent } from '../wire/events/session-event.ts'
import { startOf } from '../wire/text-start.ts'
import { composeResult, describeDenial, describeResult, readString, textsOf } from './agent-words.ts'
import { createSchedule } from './schedule.ts'
import { readTask, type Step } from './task.ts'

/** Reacts to what a session is sent, a moment later. */
export interface Agent {
  react(event: SessionEvent): void
  /** Says that answers begin, and that they end: what they let the agent do comes once for all of them. */
  beginAnswers(): void
  endAnswers(): void
  /** Whether it has something to do now; where it waits for answers it has not. */
  readonly isBusy: boolean
  /** A tool use of this session, whether it still waits or not. */
  toolUse(id: string): SessionEvent | undefined
}

export interface AgentOptions {
  /** Adds an event to the session. */
  add(type: string, fields?: object): SessionEvent
  /** Milliseconds between two events. */
  delay: number
}

export function createAgent({ add, delay }: AgentOptions): Agent {
  const uses = new Map<string, SessionEvent>()
  const waiting = new Set<string>()
  let rounds: Step[][] = []
  /** Whether it is to say that it is done, once it is. */
  let isAtTask = false
  /** What the agent does, unless it is interrupted. */
  const doings = createSchedule(delay)
  const later = doings.add

  const idle = (type: string, fields: object = {}) =>
    add('session.status_idle', { stop_reason: { type, ...fields } })
  const say = (text: string) => add('agent.message', { content: [{ type: 'text', text }] })

  function work(texts: string[]): void {
    const { rounds: asked, remarks } = readTask(texts)
    later(() => add('session.status_running'), ...remarks.map((remark) => () => say(remark)))
    if (asked.length > 0) {
      later(() => say('The emulated agent wants to use a tool.'))
      rounds.push(...asked)
      isAtTask = true
      beginRound()
      return
    }
    const text = startOf(texts.join(' '), 80)
    if (remarks.length === 0) later(() => say(`The emulated agent read “${text}”, and has nothing to do.`))
    goOn()
  }

  function beginRound(): void {
    for (const step of rounds.shift() ?? []) {
      let use: SessionEvent
      later(() => {
        use = beginUse(step)
      })
      if (step.isUnasked) later(() => bringResult(use))
    }
    goOn()
  }

  function beginUse({ type, fields, isUnasked }: Step): SessionEvent {
    const use = add(type, fields)
    uses.set(use.id ?? '', use)
    if (!isUnasked) waiting.add(use.id ?? '')
    return use
  }

  const bringResult = (use: SessionEvent) => add(...composeResult(use))

  /** What is answered twice, or was never asked, changes nothing. */
  function answer(id: string, act: (use: SessionEvent) => void): void {
    const use = uses.get(id)
    if (use && waiting.delete(id)) later(() => act(use))
  }

  function confirm(event: SessionEvent): void {
    const isAllowed = event.result === 'allow'
    const why = readString(event.deny_message)
    answer(readString(event.tool_use_id), (use) => {
      if (isAllowed) bringResult(use)
      else say(describeDenial(use, why))
    })
  }

  /** When nothing else is to be done: waits, begins the next round, or ends the turn. */
  function goOn(): void {
    later(() => {
      if (doings.length > 1) return
      if (waiting.size > 0) idle('requires_action', { event_ids: [...waiting] })
      else if (rounds.length > 0) beginRound()
      else {
        if (isAtTask) say('The emulated agent is done.')
        isAtTask = false
        idle('end_turn')
      }
    })
  }

  function interrupt(thread: string | undefined): void {
    // Where the agent rests, and waits for nothing, there is nothing to interrupt.
    if (doings.length === 0 && waiting.size === 0) return
    if (thread === undefined) {
      doings.cut()
      rounds = []
      // The one thing that is still done may ask for a tool use.
      later(() => {
        waiting.clear()
        isAtTask = false
      })
      goOn()
      return
    }
    const ids = [...waiting].filter((id) => uses.get(id)?.session_thread_id === thread)
    for (const id of ids) waiting.delete(id)
    if (ids.length > 0) goOn()
  }

  const report = (id: unknown, event: SessionEvent) =>
    answer(readString(id), (use) => say(describeResult(use, event)))

  const reactions = new Map<string, (event: SessionEvent) => void>([
    ['user.message', (event) => work(textsOf(event))],
    ['user.define_outcome', (event) => work([readString(event.description)])],
    ['user.tool_confirmation', confirm],
    ['user.tool_result', (event) => report(event.tool_use_id, event)],
    ['user.custom_tool_result', (event) => report(event.custom_tool_use_id, event)],
    ['user.interrupt', (event) => interrupt(readString(event.session_thread_id) || undefined)],
  ])

  return {
    get isBusy() {
      return doings.length > 0
    },
    toolUse: (id) => uses.get(id),
    react: (event) => reactions.get(event.type)?.(event),
    beginAnswers: () => later(() => add('session.status_running')),
    endAnswers() {
      isAtTask = true
      goOn()
    },
  }
}
