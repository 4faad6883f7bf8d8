import { notUnderstood } from '../problem/not-understood.ts'

/** Where a decoder hands on what it found, before anything that follows it can fail. */
export interface AnswerSink {
  text(text: string): void
  /** What `--raw` prints: each event's data as a line, or the bytes of a body that is no event stream. */
  raw?: ((raw: Uint8Array | string) => void) | undefined
}

/** A way of reading a body. */
export interface BodyDecoder {
  /** It hands on the body's bytes as they are. */
  isVerbatim: boolean
  /** It has no end of its own that is missing, and nothing has begun that is not complete. */
  readonly mayEndHere: boolean
  push(bytes: Uint8Array): void
  /** Throws a `CliError` where the answer is not whole. */
  end(): void
}

export const brokenOff = () => notUnderstood('the stream ended early, without saying that it was whole')
