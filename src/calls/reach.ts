import type { CliError } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'

/**
 * How far the attempts of a request got, from the least: a later attempt does not undo an earlier one. `not-taken`: it
 * was sent, and certainly not carried out; `failed`: it was answered, and is to be sent again.
 */
const stages = ['no', 'not-taken', 'failed', 'unknown', 'answered', 'done'] as const

type Stage = (typeof stages)[number]

const meanings: Record<Stage, string | undefined> = {
  no: 'nothing was sent',
  'not-taken': 'nothing was accepted',
  failed: 'the request was answered with a failure',
  unknown: 'the request was sent; it may have been carried out',
  answered: 'the answer was cut off',
  done: undefined,
}

/** How far a request that does something got. */
export interface Reach {
  /** Its first byte leaves. */
  leave(): void
  /** An attempt has failed, and there will be another. */
  fail(failure: CliError): void
  /** An answer of status 2xx begins. */
  answer(): void
  /** The answer was read. */
  finish(): void
  /** What the end of the run would mean now. */
  describe(): string | undefined
}

export function createReach({ repeat }: Endpoint): Reach {
  let stage: Stage = 'no'
  /** Of the attempts before. */
  let furthest: Stage = 'no'
  return {
    leave() {
      stage = 'unknown'
    },
    fail(failure) {
      const reached = stageOf(failure)
      if (stages.indexOf(reached) > stages.indexOf(furthest)) furthest = reached
      stage = furthest
    },
    answer() {
      // A status alone is no receipt.
      stage = repeat === 'not-taken' ? 'unknown' : 'answered'
    },
    finish() {
      stage = 'done'
    },
    describe: () => meanings[stage],
  }
}

function stageOf({ kind, details: { sent = 'no' } }: CliError): Stage {
  if (sent !== 'yes') return sent
  return kind === 'rate-limited' ? 'not-taken' : 'failed'
}
