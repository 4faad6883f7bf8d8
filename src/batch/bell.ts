/** Wakes the one who waits for a change, also for one that came just before. */
export interface Bell {
  ring(): void
  /** Resolves once it has rung since it was last waited for. */
  rung(): Promise<void>
}

export function createBell(): Bell {
  let isRung = false
  let wake = () => {}
  return {
    ring() {
      isRung = true
      wake()
    },
    async rung() {
      if (!isRung) await new Promise<void>((resolve) => (wake = resolve))
      isRung = false
    },
  }
}
