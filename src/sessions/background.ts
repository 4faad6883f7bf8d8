import { isOfMainThread, readStopReason, type SessionEvent } from '../wire/sessions/session-event.ts'

/**
 * Computes the state of child threads and workflow runs from the session's events in order. A child thread or
 * workflow run can work, or wait for replies, while the main thread is idle.
 */
export class BackgroundWork {
  readonly #listedByThread = new Map<string, readonly string[]>()
  readonly #threadOfWaitingUse = new Map<string, string>()
  readonly #endedThreads = new Set<string>()
  readonly #cancelled = new Set<string>()
  readonly #runs = new Map<string, { id: string; name: string | undefined; isIdle: boolean }>()
  readonly #endedRuns = new Set<string>()
  readonly #runOfThread = new Map<string, string>()
  readonly #threadsWaitingWithoutList = new Set<string>()
  readonly #workingThreads = new Set<string>()
  /** A workflow run ended after the last idle event, so the agent still has to read the run's result. */
  hasUnreadResult = false

  add(event: SessionEvent): void {
    const { type } = event
    if (type.startsWith('session.thread_')) this.#addThreadEvent(event)
    if (type.startsWith('workflow_run.')) this.#addRunEvent(event)
  }

  interrupt(event: SessionEvent): string[] {
    const isAll = isOfMainThread(event)
    const ids = [...this.#threadOfWaitingUse].flatMap(([id, thread]) =>
      isAll || thread === event.session_thread_id ? [id] : [],
    )
    for (const id of ids) this.#threadOfWaitingUse.delete(id)
    return ids
  }

  /**
   * Records that a tool use has an answer. Returns `undefined` if no child thread waited for the answer.
   * `run` is the id of the thread's open workflow run.
   */
  answer(id: string): { run: string | undefined } | undefined {
    const thread = this.#threadOfWaitingUse.get(id)
    if (thread === undefined) return undefined
    this.#threadOfWaitingUse.delete(id)
    this.#workingThreads.add(thread)
    const run = this.#runs.get(this.#runOfThread.get(thread) ?? '')
    if (!run) return { run: undefined }
    run.isIdle = false
    return { run: run.id }
  }

  get waiting(): Iterable<string> {
    return this.#threadOfWaitingUse.keys()
  }

  isWaitingFor(toolUse: string): boolean {
    return this.#threadOfWaitingUse.has(toolUse)
  }

  hasThreadEnded(toolUse: string, thread: unknown): boolean {
    return this.#cancelled.has(toolUse) || (typeof thread === 'string' && this.#endedThreads.has(thread))
  }

  waitsWithoutList(thread: unknown): boolean {
    return typeof thread === 'string' && this.#threadsWaitingWithoutList.has(thread)
  }

  get hasWorkingThread(): boolean {
    return this.#workingThreads.size > 0
  }

  get openRuns() {
    return [...this.#runs.values()]
  }

  get willContinue(): boolean {
    return this.hasUnreadResult || this.#runs.size > 0
  }

  /**
   * At least one workflow run can continue without replies. An idle run cannot continue. A run with a thread
   * that waits for a reply can continue only if another of its threads works.
   */
  get canContinue(): boolean {
    const findRuns = (threads: Iterable<string>) =>
      new Set([...threads].map((thread) => this.#runOfThread.get(thread)))
    const waiting = findRuns(this.#threadOfWaitingUse.values())
    const working = findRuns(this.#workingThreads)
    return this.openRuns.some(({ id, isIdle }) => !isIdle && (working.has(id) || !waiting.has(id)))
  }

  #addThreadEvent(event: SessionEvent): void {
    const { type, session_thread_id: id, workflow_run_id: run } = event
    if (typeof id !== 'string' || id === '' || this.#endedThreads.has(id)) return
    if (typeof run === 'string' && run !== '') this.#runOfThread.set(id, run)
    const status = /^session\.thread_status_(.+)/.exec(type)?.[1]
    if (status === undefined) return
    const waitingBefore = (this.#listedByThread.get(id) ?? []).filter(
      (each) => this.#threadOfWaitingUse.get(each) === id,
    )
    for (const each of waitingBefore) this.#threadOfWaitingUse.delete(each)
    this.#listedByThread.delete(id)
    this.#workingThreads.delete(id)
    this.#threadsWaitingWithoutList.delete(id)
    if (status === 'terminated') {
      for (const each of waitingBefore) this.#cancelled.add(each)
      this.#endedThreads.add(id)
    } else if (status === 'idle') {
      const { type: reason, eventIds: listed = [] } = readStopReason(event)
      if (reason === 'requires_action' && listed.length === 0) this.#threadsWaitingWithoutList.add(id)
      if (listed.length > 0) this.#listedByThread.set(id, listed)
      for (const each of listed) this.#threadOfWaitingUse.set(each, id)
    } else if (status !== 'created') this.#workingThreads.add(id)
  }

  #addRunEvent(event: SessionEvent): void {
    const { type, workflow_run_id: id, name } = event
    if (typeof id !== 'string' || id === '' || this.#endedRuns.has(id)) return
    if (type === 'workflow_run.status_ended') {
      this.#runs.delete(id)
      this.#endedRuns.add(id)
      this.hasUnreadResult = true
      return
    }
    // Some services omit the event that creates a run, so any event of an unknown run opens the run.
    const run = this.#runs.get(id) ?? { id, name: undefined, isIdle: false }
    this.#runs.set(id, run)
    if (typeof name === 'string' && name !== '') run.name = name
    run.isIdle = type === 'workflow_run.status_idle' || (run.isIdle && type === 'workflow_run.error')
  }
}
