export interface Progress {
  /** The task was accepted, or there is none. */
  isBegun: boolean
}
