import { isOfMainThread, readStopReason, type SessionEvent } from '../wire/sessions/session-event.ts'

interface Thread {
  /** Id of the workflow run of the thread. */
  run: string | undefined
  /** Ids of the tool uses in the thread's last idle event. */
  waiting: readonly string[]
  isRunning: boolean
}

/** A workflow run that has not ended. */
export interface WorkflowRun {
  id: string
  name: string | undefined
}

/**
 * The child threads and the workflow runs of a session, by its events in their order (public clients, 10). Both can work and
 * wait independently of the main thread.
 */
export class Background {
  /** Threads that work or wait, and all of open workflow runs, by id. */
  readonly #threads = new Map<string, Thread>()
  readonly #endedThreads = new Set<string>()
  /** Tool uses that waited when their thread ended. */
  readonly #abandoned = new Set<string>()
  readonly #runs = new Map<string, WorkflowRun & { isIdle: boolean }>()
  readonly #endedRuns = new Set<string>()
  /** A workflow run has ended, and the session was not idle since: the agent is going to read the result. */
  hasUnreadResult = false

  add(event: SessionEvent): void {
    const { type } = event
    if (type.startsWith('session.thread_')) this.#addThreadEvent(event)
    if (type.startsWith('workflow_run.')) this.#addRunEvent(event)
  }

  /** The session is idle: none of its own threads works. A thread of a workflow run may. */
  addIdle(): void {
    this.hasUnreadResult = false
    for (const [id, thread] of this.#threads) {
      if (thread.run === undefined) thread.isRunning = false
      this.#forgetIdle(id, thread)
    }
  }

  /** Interrupts a thread, or all of them. Returns the ids of the tool uses that waited. */
  interrupt(event: SessionEvent): string[] {
    const threads = [...this.#threads].filter(
      ([id]) => isOfMainThread(event) || id === event.session_thread_id,
    )
    const ids = threads.flatMap(([, { waiting }]) => waiting)
    for (const [, thread] of threads) thread.waiting = []
    return ids
  }

  /** A waiting tool use has an answer, so its thread works again. Returns the open workflow run of the thread, if any. */
  answer(id: string): { run: string | undefined } | undefined {
    const thread = [...this.#threads.values()].find(({ waiting }) => waiting.includes(id))
    if (!thread) return undefined
    thread.isRunning = true
    const run = this.#runs.get(thread.run ?? '')
    if (run) run.isIdle = false
    return { run: run?.id }
  }

  /** The ids of the tool uses for which a thread is idle. They may have answers. */
  get waiting(): string[] {
    return [...this.#threads.values()].flatMap(({ waiting }) => waiting)
  }

  /** Returns whether the thread of a tool use has ended, so that no reply to the tool use has an effect. */
  hasEnded(toolUse: string, thread: unknown): boolean {
    return this.#abandoned.has(toolUse) || (typeof thread === 'string' && this.#endedThreads.has(thread))
  }

  get openRuns(): WorkflowRun[] {
    return [...this.#runs.values()]
  }

  /** The agent answers later without input: a workflow run is open, or the agent has not read its result. */
  get isOpen(): boolean {
    return this.hasUnreadResult || this.#runs.size > 0
  }

  /**
   * A workflow run can continue although tool uses wait. It cannot if it is idle, or if one of its threads waits and none of
   * them works.
   */
  get canContinue(): boolean {
    return [...this.#runs.values()].some(({ id, isIdle }) => {
      const threads = [...this.#threads.values()].filter(({ run }) => run === id)
      return (
        !isIdle &&
        (threads.some(({ isRunning }) => isRunning) || threads.every((each) => each.waiting.length === 0))
      )
    })
  }

  #addThreadEvent(event: SessionEvent): void {
    const { type, session_thread_id: id, workflow_run_id: run } = event
    if (typeof id !== 'string' || id === '' || this.#endedThreads.has(id)) return
    const thread = this.#threads.get(id) ?? { run: undefined, waiting: [], isRunning: false }
    this.#threads.set(id, thread)
    if (typeof run === 'string' && run !== '') thread.run = run
    if (type === 'session.thread_status_idle')
      Object.assign(thread, { waiting: readStopReason(event).eventIds ?? [], isRunning: false })
    else if (/^session\.thread_status_(running|rescheduled)$/.test(type))
      Object.assign(thread, { waiting: [], isRunning: true })
    else if (type === 'session.thread_status_terminated') {
      for (const each of thread.waiting) this.#abandoned.add(each)
      this.#threads.delete(id)
      this.#endedThreads.add(id)
    }
    this.#forgetIdle(id, thread)
  }

  /** A session may have many threads, one after the other. */
  #forgetIdle(id: string, { run, waiting, isRunning }: Thread): void {
    if (run === undefined && waiting.length === 0 && !isRunning) this.#threads.delete(id)
  }

  #addRunEvent(event: SessionEvent): void {
    const { type, workflow_run_id: id, name } = event
    if (typeof id !== 'string' || id === '' || this.#endedRuns.has(id)) return
    if (type === 'workflow_run.status_ended') {
      this.#runs.delete(id)
      this.#endedRuns.add(id)
      this.hasUnreadResult = true
      for (const [thread, { run }] of this.#threads) if (run === id) this.#threads.delete(thread)
      return
    }
    // An event of a run whose creation was omitted shows that the run is open.
    const run = this.#runs.get(id) ?? { id, name: undefined, isIdle: false }
    this.#runs.set(id, run)
    if (typeof name === 'string' && name !== '') run.name = name
    run.isIdle = type === 'workflow_run.status_idle' || (run.isIdle && type === 'workflow_run.error')
  }
}
