import { readText, type SessionEvent } from '../../wire/sessions/session-event.ts'
import { startOf } from '../../wire/text-start.ts'
import type { Meter } from './meter.ts'
import { readTask, type TaskStep } from './task.ts'

/** What an agent that does nothing now has to know to go on. */
export interface AgentState {
  rounds: TaskStep[][]
  isAtTask: boolean
  hasLastWord: boolean
  held: SessionEvent[]
  /** The ids of the tool uses that wait. */
  waiting: string[]
  /** Those that are known. */
  threads: string[]
}

interface AgentOptions {
  add: AddEvent
  meter: Meter
  /** Milliseconds between two events. */
  delay: number
  /** How an earlier one was left, and what it had done. */
  earlier?: { state: AgentState; events: readonly SessionEvent[] } | undefined
}

/** Reacts to what a session is sent, a moment later. */
export class Agent {
  readonly #add: AddEvent
  readonly #meter: Meter
  readonly #voice: Voice
  /** What the agent does next, unless it is interrupted. */
  readonly #doings: ReturnType<typeof createSchedule>
  readonly #uses: ToolUses
  readonly #threads: Threads
  #rounds: TaskStep[][]
  /** It says that it is done, once it is. */
  #isAtTask: boolean
  /** What a task had it say ends its turn, in place of its own words. */
  #hasLastWord: boolean
  /** Replies that came while the budget was used up. */
  #held: SessionEvent[]

  constructor({ add, meter, delay, earlier }: AgentOptions) {
    const { rounds = [], isAtTask = false, hasLastWord = false, held = [] } = earlier?.state ?? {}
    this.#add = add
    this.#meter = meter
    this.#threads = new Map(earlier?.state.threads.map((thread) => [thread, 'idle']))
    this.#voice = createVoice(add, { meter, threads: this.#threads })
    this.#doings = createSchedule(delay)
    this.#uses = new ToolUses(earlier?.events, earlier?.state.waiting)
    this.#rounds = rounds
    this.#isAtTask = isAtTask
    this.#hasLastWord = hasLastWord
    this.#held = held
  }

  get state(): AgentState {
    return {
      rounds: this.#rounds,
      isAtTask: this.#isAtTask,
      hasLastWord: this.#hasLastWord,
      held: this.#held,
      waiting: this.#uses.waiting,
      threads: [...this.#threads.keys()],
    }
  }

  /** Whether it has something to do now. While it waits for replies it has not. */
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
    else if (type === 'user.interrupt') this.#interrupt(readString(event.session_thread_id) || undefined)
    else if (this.#meter.isSpent) this.#held.push(event)
    else this.#takeReply(event)
  }

  /** Several replies follow, up to `endReplies`: the agent goes on once for all of them. */
  beginReplies(): void {
    if (!this.#meter.isSpent) this.#later(() => this.#voice.run())
  }

  endReplies(): void {
    this.#isAtTask = true
    this.#goOn()
  }

  /** The budget allows more than before: the agent goes on if that is what it stopped for. */
  endPause(): void {
    if (!this.#isAtTask) return
    this.#later(() => this.#voice.run())
    for (const reply of this.#held.splice(0)) this.#takeReply(reply)
    this.#goOn()
  }

  #takeReply(event: SessionEvent): void {
    const { type } = event
    if (type === 'user.tool_confirmation') this.#confirm(event)
    else if (type === 'user.tool_result') this.#report(event.tool_use_id, event)
    else if (type === 'user.custom_tool_result') this.#report(event.custom_tool_use_id, event)
  }

  #later(...acts: (() => unknown)[]): void {
    this.#doings.add(...acts)
  }

  #work(texts: string[]): void {
    const { rounds, remarks } = readTask(texts)
    this.#later(() => this.#voice.run())
    for (const remark of remarks) this.#later(() => this.#voice.say(remark))
    if (rounds.length > 0) {
      if (rounds.flat().some(({ type }) => type !== 'agent.message'))
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
      let event: SessionEvent
      this.#later(() => {
        event = this.#take(step)
      })
      if (step.isUnasked) this.#later(() => this.#voice.bringResult(event))
    }
    this.#goOn()
  }

  #take({ type, fields, isUnasked }: TaskStep): SessionEvent {
    if (fields.session_thread_id !== undefined) this.#voice.enter(fields.session_thread_id)
    const event = this.#add(type, fields)
    this.#hasLastWord = type === 'agent.message' && fields.session_thread_id === undefined
    if (type !== 'agent.message') this.#uses.add(event, { waits: !isUnasked })
    return event
  }

  /** A second reply, or one that nobody asked for, changes nothing. */
  #settle(id: string, act: (use: SessionEvent) => void): void {
    const use = this.#uses.takeWaiting(id)
    this.#hasLastWord = false
    if (use) this.#later(() => act(use))
  }

  #confirm(event: SessionEvent): void {
    const { tool_use_id: id, result, deny_message: why } = event
    this.#settle(readString(id), (use) => {
      if (result === 'allow') this.#voice.bringResult(use)
      else this.#voice.say(describeDenial(use, readString(why)))
    })
  }

  #report(id: unknown, event: SessionEvent): void {
    this.#settle(readString(id), (use) => this.#voice.say(describeResult(use, event)))
  }

  /** When nothing else is to be done: waits, begins the next round, or ends the turn. */
  #goOn(): void {
    this.#later(() => {
      if (this.#doings.length > 1) return
      this.#voice.endRequest()
      const { waiting } = this.#uses
      if (this.#isAtTask && !this.#isDone && this.#meter.isSpent) this.#voice.idle('budget_reached')
      else if (waiting.length > 0) this.#voice.idle('requires_action', { event_ids: waiting })
      else if (this.#rounds.length > 0) this.#beginRound()
      else this.#endTurn()
    })
  }

  /** Nothing is left of its task but to end the turn, without another word. */
  get #isDone(): boolean {
    return this.#hasLastWord && this.#rounds.length === 0 && this.#uses.waiting.length === 0
  }

  #endTurn(): void {
    if (this.#isAtTask && !this.#hasLastWord) this.#voice.say('The emulated agent is done.')
    this.#isAtTask = false
    this.#hasLastWord = false
    this.#voice.idle('end_turn')
  }

  #interrupt(thread: string | undefined): void {
    // An agent that is idle, and waits for nothing, has nothing to interrupt.
    if (this.#doings.length === 0 && this.#uses.waiting.length === 0 && !this.#isAtTask) return
    if (thread === undefined) this.#interruptAll()
    else if (this.#uses.drop(thread)) this.#goOn()
  }

  #interruptAll(): void {
    this.#doings.cut()
    this.#rounds = []
    this.#held = []
    // The one thing that is still done may ask for a tool use.
    this.#later(() => {
      this.#uses.drop()
      this.#isAtTask = false
    })
    this.#goOn()
  }
}

/** Adds an event to a session. */
type AddEvent = (type: string, fields?: object) => SessionEvent

/** The events by which an agent shows what it does. */
interface Voice {
  run(): void
  /** Something happens in another thread than the main one. */
  enter(thread: string): void
  say(text: string): void
  /** What a tool of the service's own gave. */
  bringResult(use: SessionEvent): void
  /** The model has written all that it writes before something else happens. */
  endRequest(): void
  idle(type: string, fields?: object): void
}

/** The agent's threads beside the main one, and whether each has come to rest. */
type Threads = Map<string, 'working' | 'idle'>

function createVoice(add: AddEvent, { meter, threads }: { meter: Meter; threads: Threads }): Voice {
  function endRequest(): void {
    const usage = meter.endRequest()
    if (usage) add('span.model_request_end', { is_error: false, model_usage: usage })
  }

  return {
    run: () => void add('session.status_running'),
    enter(thread) {
      if (!threads.has(thread)) add('session.thread_created', { session_thread_id: thread })
      threads.set(thread, 'working')
    },
    say: (text) => void add('agent.message', { content: [{ type: 'text', text }] }),
    bringResult(use) {
      endRequest()
      add(...composeResult(use))
    },
    endRequest,
    idle(type, fields = {}) {
      endRequest()
      for (const [thread, status] of threads) {
        if (status === 'working')
          add('session.thread_status_idle', { session_thread_id: thread, stop_reason: { type: 'end_turn' } })
        threads.set(thread, 'idle')
      }
      meter.endWork()
      const { usage, budget } = meter
      add('session.usage', { usage, ...(budget ? { budget } : {}) })
      add('session.status_idle', { stop_reason: { type, ...fields } })
    },
  }
}

function composeResult({ id, type, session_thread_id: thread }: SessionEvent): [string, object] {
  const content = [{ type: 'text', text: 'emulated output' }]
  const place = thread === undefined ? {} : { session_thread_id: thread }
  return type === 'agent.mcp_tool_use'
    ? ['agent.mcp_tool_result', { mcp_tool_use_id: id, content, ...place }]
    : ['agent.tool_result', { tool_use_id: id, content, ...place }]
}

/** If no schema says that a value is text it can be anything, also what cannot be made into text. */
export const readString = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The texts of an event's blocks. */
const textsOf = ({ content }: SessionEvent): string[] =>
  Array.isArray(content) ? content.map((block) => readString(block?.text)) : []

function describeDenial(use: SessionEvent, reason: string): string {
  return `The emulated agent does without ${use.name}, which was denied${reason && `: “${brief(reason)}”`}.`
}

function describeResult(use: SessionEvent, result: SessionEvent): string {
  const said = `“${brief(readText(result))}”`
  return result.is_error === true
    ? `The emulated agent does without ${use.name}, which failed: ${said}.`
    : `The emulated agent read what ${use.name} gave: ${said}.`
}

function brief(text: string): string {
  const characters = [...text.slice(0, 200)]
  return characters.length > 80 ? `${characters.slice(0, 80).join('')}…` : characters.join('')
}

/** Things that are done one after the other, each a moment later. */
interface AgentSchedule {
  /** How many are still to be done, with the one that is being done. */
  readonly length: number
  add(...actions: (() => void)[]): void
  /** Drops all but the next. */
  cut(): void
}

/** Makes a schedule with so many milliseconds before each thing. */
function createSchedule(delay: number): AgentSchedule {
  let queue: (() => void)[] = []

  function next(): void {
    const step = () => {
      queue[0]?.()
      queue.shift()
      if (queue.length > 0) next()
    }
    if (delay > 0) setTimeout(step, delay)
    else setImmediate(step)
  }

  return {
    get length() {
      return queue.length
    },
    add(...actions) {
      const isResting = queue.length === 0
      queue.push(...actions)
      if (isResting && queue.length > 0) next()
    },
    cut() {
      queue = queue.slice(0, 1)
    },
  }
}

/** The tool uses of a session, and which of them wait for a reply. */
class ToolUses {
  readonly #all = new Map<string, SessionEvent>()
  readonly #waiting: Set<string>

  constructor(events: readonly SessionEvent[] = [], waiting: readonly string[] = []) {
    for (const event of events) if (event.type.endsWith('tool_use')) this.#all.set(event.id ?? '', event)
    this.#waiting = new Set(waiting)
  }

  add(use: SessionEvent, { waits }: { waits: boolean }): void {
    this.#all.set(use.id ?? '', use)
    if (waits) this.#waiting.add(use.id ?? '')
  }

  get(id: string): SessionEvent | undefined {
    return this.#all.get(id)
  }

  get waiting(): string[] {
    return [...this.#waiting]
  }

  /** Returns the tool use if it waits; from now on it does not. */
  takeWaiting(id: string): SessionEvent | undefined {
    return this.#waiting.delete(id) ? this.#all.get(id) : undefined
  }

  /** Those of a thread, or all of them, wait no longer. Returns whether any did. */
  drop(thread?: string): boolean {
    const ids = this.waiting.filter(
      (id) => thread === undefined || this.#all.get(id)?.session_thread_id === thread,
    )
    for (const id of ids) this.#waiting.delete(id)
    return ids.length > 0
  }
}
