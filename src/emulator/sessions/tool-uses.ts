import type { SessionEvent } from '../../wire/sessions/session-event.ts'

/** The tool uses of a session, and which of them wait for an answer. */
export class ToolUses {
  readonly #all = new Map<string, SessionEvent>()
  readonly #waiting = new Set<string>()

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
