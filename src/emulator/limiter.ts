export interface Limit {
  /** Requests a second, and how many may come at once after a pause; at least 1. */
  rate: number
  /** Milliseconds since any moment. */
  now(): number
}

/** Makes a bucket that refills: a call takes one request out of it, or returns false where it is empty. */
export function createLimiter({ rate, now }: Limit): () => boolean {
  let left = rate
  let last = now()

  return () => {
    const time = now()
    // A clock that is set back takes nothing away.
    left = Math.min(rate, left + (Math.max(0, time - last) * rate) / 1000)
    last = time
    // Who waits for just as long as told may be a hair early; what is lent here is paid back.
    if (left < 0.99) return false
    left--
    return true
  }
}
