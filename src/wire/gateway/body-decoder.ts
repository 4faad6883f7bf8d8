import { notUnderstood } from '../problem/not-understood.ts'

/** Where a decoder sends what it has read, before anything that follows can fail. */
export interface AnswerSink {
  text(text: string): void
  /** What `--raw` prints: each event's data as a line, or the bytes of a body of another form. */
  raw?: ((raw: Uint8Array | string) => void) | undefined
}

/** Decodes a body of one form. */
export interface BodyDecoder {
  /** `raw` gets the body's bytes as they are. */
  isVerbatim: boolean
  /** The body needs no mark of its end, and nothing in it is incomplete. */
  readonly mayEndHere: boolean
  push(bytes: Uint8Array): void
  /** Throws a `CliError` where the answer is not whole. */
  end(): void
}

export const brokenOff = () => notUnderstood('the stream ended early: the answer is not complete')
