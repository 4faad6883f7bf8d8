/** A timer that a wait of more than 24 days does not turn into one of a millisecond. */
export function setTimer(callback: () => void, milliseconds: number): NodeJS.Timeout {
  return setTimeout(callback, Math.min(Math.max(milliseconds, 0), 2 ** 31 - 1))
}
