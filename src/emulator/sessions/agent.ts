import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import { startOf } from '../../wire/text-start.ts'
import { type AddEvent, createVoice, type Voice } from './agent-voice.ts'
import { describeDenial, describeResult, readString, textsOf } from './agent-words.ts'
import { createSchedule } from './schedule.ts'
import { readTask, type Step } from './task.ts'
import { ToolUses } from './tool-uses.ts'

/** Reacts to what a session is sent, a moment later. */
export class Agent {
  readonly #add: AddEvent
  readonly #voice: Voice
  /** What the agent does next, unless it is interrupted. */
  readonly #doings: ReturnType<typeof createSchedule>
  readonly #uses = new ToolUses()
  #rounds: Step[][] = []
  /** It says that it is done, once it is. */
  #isAtTask = false

  /** `delay` is milliseconds between two events. */
  constructor(add: AddEvent, delay: number) {
    this.#add = add
    this.#voice = createVoice(add)
    this.#doings = createSchedule(delay)
  }

  /** Whether it has something to do now. While it waits for answers it has not. */
  get isBusy(): boolean {
    return this.#doings.length > 0
  }

  /** A tool use of this session, whether it still waits or not. */
  toolUse(id: string): SessionEvent | undefined {
    return this.#uses.get(id)
  }

  react(event: SessionEvent): void {
    const { type } = event
    if (type === 'user.message') this.#work(textsOf(event))
    else if (type === 'user.define_outcome') this.#work([readString(event.description)])
    else if (type === 'user.tool_confirmation') this.#confirm(event)
    else if (type === 'user.tool_result') this.#report(event.tool_use_id, event)
    else if (type === 'user.custom_tool_result') this.#report(event.custom_tool_use_id, event)
    else if (type === 'user.interrupt') this.#interrupt(readString(event.session_thread_id) || undefined)
  }

  /** Several answers follow, up to `endAnswers`: the agent goes on once for all of them. */
  beginAnswers(): void {
    this.#later(() => this.#voice.run())
  }

  endAnswers(): void {
    this.#isAtTask = true
    this.#goOn()
  }

  #later(...acts: (() => unknown)[]): void {
    this.#doings.add(...acts)
  }

  #work(texts: string[]): void {
    const { rounds, remarks } = readTask(texts)
    this.#later(() => this.#voice.run())
    for (const remark of remarks) this.#later(() => this.#voice.say(remark))
    if (rounds.length > 0) {
      this.#later(() => this.#voice.say('The emulated agent wants to use a tool.'))
      this.#rounds.push(...rounds)
      this.#isAtTask = true
      this.#beginRound()
    } else {
      const text = `The emulated agent read “${startOf(texts.join(' '), 80)}”, and has nothing to do.`
      if (remarks.length === 0) this.#later(() => this.#voice.say(text))
      this.#goOn()
    }
  }

  #beginRound(): void {
    for (const step of this.#rounds.shift() ?? []) {
      let use: SessionEvent
      this.#later(() => {
        use = this.#beginUse(step)
      })
      if (step.isUnasked) this.#later(() => this.#voice.bringResult(use))
    }
    this.#goOn()
  }

  #beginUse({ type, fields, isUnasked }: Step): SessionEvent {
    const use = this.#add(type, fields)
    this.#uses.add(use, { waits: !isUnasked })
    return use
  }

  /** A second answer, or one that nobody asked for, changes nothing. */
  #answer(id: string, act: (use: SessionEvent) => void): void {
    const use = this.#uses.takeWaiting(id)
    if (use) this.#later(() => act(use))
  }

  #confirm(event: SessionEvent): void {
    const { tool_use_id: id, result, deny_message: why } = event
    this.#answer(readString(id), (use) => {
      if (result === 'allow') this.#voice.bringResult(use)
      else this.#voice.say(describeDenial(use, readString(why)))
    })
  }

  #report(id: unknown, event: SessionEvent): void {
    this.#answer(readString(id), (use) => this.#voice.say(describeResult(use, event)))
  }

  /** When nothing else is to be done: waits, begins the next round, or ends the turn. */
  #goOn(): void {
    this.#later(() => {
      if (this.#doings.length > 1) return
      const { waiting } = this.#uses
      if (waiting.length > 0) this.#voice.idle('requires_action', { event_ids: waiting })
      else if (this.#rounds.length > 0) this.#beginRound()
      else this.#endTurn()
    })
  }

  #endTurn(): void {
    if (this.#isAtTask) this.#voice.say('The emulated agent is done.')
    this.#isAtTask = false
    this.#voice.idle('end_turn')
  }

  #interrupt(thread: string | undefined): void {
    // An agent that is idle, and waits for nothing, has nothing to interrupt.
    if (this.#doings.length === 0 && this.#uses.waiting.length === 0) return
    if (thread === undefined) this.#interruptAll()
    else if (this.#uses.drop(thread)) this.#goOn()
  }

  #interruptAll(): void {
    this.#doings.cut()
    this.#rounds = []
    // The one thing that is still done may ask for a tool use.
    this.#later(() => {
      this.#uses.drop()
      this.#isAtTask = false
    })
    this.#goOn()
  }
}
