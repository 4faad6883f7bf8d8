import { CliError } from '../errors.ts'
import { callAfter, type Timers } from '../timers.ts'

/** Whether a batch ends before all of its lines were asked, and why. */
export interface Halt {
  /** Nothing is begun any more; what is under way is finished. */
  readonly isOn: boolean
  /** The first that was given. */
  readonly reason: unknown
  /** Given when nothing is waited for any longer. */
  readonly cut: AbortSignal
  /** Nothing more is read; what was read is asked. */
  endInput(reason: unknown): void
  begin(reason: unknown): void
  /** Lets go of the clock. */
  forget(): void
}

export interface HaltOptions {
  /** Milliseconds since the epoch; Infinity for none. */
  deadline: number
  /** Given when nothing new is to be begun. */
  interrupted: AbortSignal
  timers: Timers
}

/** `onHalt` is called whenever it comes on. */
export function createHalt({ deadline, interrupted, timers }: HaltOptions, onHalt: () => void): Halt {
  const cut = new AbortController()
  let isOn = false
  let reason: unknown

  function begin(because: unknown): void {
    reason ??= because
    isOn = true
    onHalt()
  }

  function expire(): void {
    begin(new CliError('stopped', 'the deadline passed', { sent: 'yes' }))
    cut.abort()
  }

  const interrupt = () => begin(undefined)
  interrupted.addEventListener('abort', interrupt)
  if (interrupted.aborted) interrupt()
  const left = deadline - timers.now()
  if (left <= 0) expire()
  const forget = left > 0 && left < Infinity ? callAfter(timers, left, expire) : () => {}
  return {
    get isOn() {
      return isOn
    },
    get reason() {
      return reason
    },
    cut: cut.signal,
    endInput(because) {
      reason ??= because
    },
    begin,
    forget() {
      forget()
      interrupted.removeEventListener('abort', interrupt)
    },
  }
}
