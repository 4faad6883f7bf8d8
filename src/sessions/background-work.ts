import { isMainThreadEvent, readStopReason, type SessionEvent } from '../wire/sessions/session-event.ts'

interface ChildThread {
  run: string | undefined
  is: 'idle' | 'waiting without list' | 'working' | 'ended'
  /** Tool uses in the last idle event of the thread. */
  listed: readonly string[]
}

/**
 * Computes the state of child threads and workflow runs from the session's events in order. A child thread or
 * workflow run can work, or wait for replies, while the main thread is idle.
 */
export class BackgroundWork {
  readonly threads = new Map<unknown, ChildThread>()
  /** Child threads that wait for a reply, by the ids of their tool uses. */
  readonly waiting = new Map<string, ChildThread>()
  readonly #cancelled = new Set<string>()
  /** Workflow runs that have not ended, by id. */
  readonly runs = new Map<unknown, { id: string; name: string | undefined; isIdle: boolean }>()
  readonly #endedRuns = new Set<string>()
  /**
   * True if a workflow run ended after the last idle event. The agent then still has to read the run's
   * result.
   */
  hasUnreadResult = false

  add(event: SessionEvent): void {
    const { type } = event
    if (type.startsWith('session.thread_')) this.#addThreadEvent(event)
    if (type.startsWith('workflow_run.')) this.#addRunEvent(event)
  }

  interrupt(event: SessionEvent): string[] {
    const isAll = isMainThreadEvent(event)
    const interrupted = this.threads.get(event.session_thread_id)
    const ids = [...this.waiting].flatMap(([id, thread]) => (isAll || thread === interrupted ? id : []))
    for (const id of ids) this.waiting.delete(id)
    return ids
  }

  /**
   * Records that a tool use has an answer. Returns `undefined` if no child thread waited for the answer.
   * `run` is the id of the thread's open workflow run.
   */
  answer(id: string): { run: string | undefined } | undefined {
    const thread = this.waiting.get(id)
    if (!thread) return undefined
    this.waiting.delete(id)
    thread.is = 'working'
    const run = this.runs.get(thread.run)
    if (run) run.isIdle = false
    return { run: run?.id }
  }

  hasThreadEnded(toolUse: string, thread: unknown): boolean {
    return this.#cancelled.has(toolUse) || this.threads.get(thread)?.is === 'ended'
  }

  get workingThreads(): ChildThread[] {
    return [...this.threads.values()].filter(({ is }) => is === 'working')
  }

  /**
   * True if a workflow run can continue without a reply: the run is not idle, and at least one of its threads
   * works or none of them waits for a reply.
   */
  get canContinue(): boolean {
    const waiting = new Set([...this.waiting.values()].map(({ run }) => run))
    const working = new Set(this.workingThreads.map(({ run }) => run))
    return [...this.runs.values()].some(({ id, isIdle }) => !isIdle && (working.has(id) || !waiting.has(id)))
  }

  #addThreadEvent(event: SessionEvent): void {
    const { type, session_thread_id: id, workflow_run_id: run } = event
    if (typeof id !== 'string' || id === '') return
    const thread = this.threads.get(id) ?? { run: undefined, is: 'idle', listed: [] }
    if (thread.is === 'ended') return
    this.threads.set(id, thread)
    if (typeof run === 'string' && run !== '') thread.run = run
    const status = /^session\.thread_status_(.+)/.exec(type)?.[1]
    if (status === undefined) return
    const waitingBefore = thread.listed.filter((each) => this.waiting.get(each) === thread)
    for (const each of waitingBefore) this.waiting.delete(each)
    const stop = status === 'idle' ? readStopReason(event) : {}
    thread.listed = stop.eventIds ?? []
    for (const each of thread.listed) this.waiting.set(each, thread)
    if (status === 'terminated') {
      for (const each of waitingBefore) this.#cancelled.add(each)
      thread.is = 'ended'
    } else if (stop.type === 'requires_action' && thread.listed.length === 0)
      thread.is = 'waiting without list'
    else thread.is = status === 'idle' || status === 'created' ? 'idle' : 'working'
  }

  #addRunEvent(event: SessionEvent): void {
    const { type, workflow_run_id: id, name } = event
    if (typeof id !== 'string' || id === '' || this.#endedRuns.has(id)) return
    if (type === 'workflow_run.status_ended') {
      this.runs.delete(id)
      this.#endedRuns.add(id)
      this.hasUnreadResult = true
      return
    }
    // Some services omit the event that creates a run, so any event of an unknown run opens the run.
    const run = this.runs.get(id) ?? { id, name: undefined, isIdle: false }
    this.runs.set(id, run)
    if (typeof name === 'string' && name !== '') run.name = name
    run.isIdle = type === 'workflow_run.status_idle' || (run.isIdle && type === 'workflow_run.error')
  }
}
