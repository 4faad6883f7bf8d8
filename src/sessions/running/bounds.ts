import { callAfter } from '../../timers.ts'
import type { EventItem } from '../../wire/sessions/events-page.ts'
import { readUsage, type SessionUsage } from '../../wire/sessions/usage.ts'
import type { Follower } from '../following/follower.ts'
import { readSession } from '../read-session.ts'
import type { SessionAccess } from '../session.ts'
import { describeUsage } from '../usage-text.ts'
import { type BoundFlags, Budget } from './budget.ts'
import type { SessionInterrupt } from './interrupt.ts'

/** How often a session that works is asked what it costs. Milliseconds. */
const interval = 30_000

/** Reads what a run uses, has the report tell it, and has the session interrupted at a bound. */
export class Bounds {
  readonly #session: SessionAccess
  readonly #interrupt: SessionInterrupt
  readonly #budget: Budget
  readonly #asksAgain: boolean
  #follower: Follower | undefined
  #isRoundingTold = false
  #cancelAsking = () => {}

  constructor(session: SessionAccess, flags: BoundFlags, interrupt: SessionInterrupt) {
    this.#session = session
    this.#interrupt = interrupt
    this.#budget = new Budget(flags)
    this.#asksAgain = flags.maxCost !== undefined
  }

  addPast(items: readonly EventItem[]): void {
    for (const { event } of items) this.#budget.add(event)
  }

  /** The run is about to send its task, or takes the session up without one. */
  async begin(hasTask: boolean): Promise<void> {
    this.#budget.begin(hasTask)
    if (this.#isShown && this.#budget.lacksBase) this.#budget.addBase(await this.#ask())
  }

  follow(follower: Follower): void {
    this.#follower = follower
    this.#interrupt.follow(follower)
    this.#tell()
    if (this.#asksAgain) this.#askAgain()
  }

  add(items: readonly EventItem[]): void {
    this.addPast(items)
    this.#check()
  }

  /** The session came to rest, or `error` ended the run. Returns the stop at a bound that this is, else `error`. */
  async end(error: unknown): Promise<unknown> {
    await this.#interrupt.giveUp()
    if (this.#isAtRest && this.#isShown && !this.#budget.isTold) await this.#askAndCheck()
    const { lack } = this.#budget
    if (!this.#interrupt.isWanted && lack !== undefined) this.#session.context.warn(lack)
    return this.#interrupt.stopOf(error)
  }

  /** What the run used, for a person; empty if it is not known. */
  describe(): string {
    return describeUsage(this.#budget.run)
  }

  close(): void {
    this.#cancelAsking()
    void this.#interrupt.giveUp()
  }

  /** Somebody looks at the usage, or it is bounded. */
  get #isShown(): boolean {
    const { host, flags } = this.#session.context
    return host.stderr.isTerminal || flags.report !== undefined || this.#budget.isBounded
  }

  get #isAtRest(): boolean {
    return this.#follower?.state.stop !== undefined
  }

  #check(): void {
    const { rounding } = this.#budget
    if (rounding !== undefined && !this.#isRoundingTold) this.#session.context.note(rounding)
    this.#isRoundingTold ||= rounding !== undefined
    this.#tell()
    this.#interrupt.update(this.#budget.exceeded())
  }

  #askAgain(): void {
    this.#cancelAsking = callAfter(this.#session.context.timers, interval, async () => {
      this.#askAgain()
      if (!this.#isAtRest && !this.#interrupt.isWanted) await this.#askAndCheck()
    })
  }

  async #askAndCheck(): Promise<void> {
    this.#budget.addSession(await this.#ask())
    this.#check()
  }

  async #ask(): Promise<SessionUsage | undefined> {
    const session = await readSession(this.#session)
    return session && readUsage(session.usage)
  }

  /** Has the report say what is known by now; a signal may write it. */
  #tell(): void {
    const { summary } = this.#session.context
    const { run, session } = this.#budget
    summary.usage = new Map(Object.entries(run.tokens ?? {}))
    summary.figures.cost = run.cost
    summary.figures.sessionUsage = session.tokens && new Map(Object.entries(session.tokens))
    summary.figures.sessionCost = session.cost
  }
}
