import type { Run } from '../context.ts'
import type { CliError } from '../errors.ts'
import type { Endpoint } from '../wire/endpoints.ts'

/**
 * How far the attempts of a request got, from the least to the most: a later attempt does not undo an earlier one.
 * `not-taken`: it was sent, and certainly not carried out; `failed`: the answer was a failure, and the request is sent again.
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

/** How far one call got, and what its interruption would mean. */
export interface Reach {
  /** The first byte leaves. */
  leave(): void
  /** An attempt has failed, and there will be another. */
  fail(failure: CliError): void
  /** An answer of status 2xx begins. */
  answer(): void
  /** The answer was read. */
  finish(): void
  /** The call failed: its failure says the rest. */
  end(): void
}

/**
 * Keeps how far each call of a run got, and says what the end of the run would mean for those under way. Calls that only
 * read do not count.
 */
export function createReaches({ whenInterrupted }: Run): (endpoint: Endpoint) => Reach {
  const underWay = new Set<Tracked>()
  return (endpoint) => {
    const reach = track(endpoint)
    if (endpoint.repeat === 'always') return reach
    for (const other of underWay) if (other.isOver()) underWay.delete(other)
    underWay.add(reach)
    whenInterrupted(() => {
      const open = [...underWay].filter((each) => !each.isOver())
      return describeAll((open.length > 0 ? open : [...underWay]).map((each) => meanings[each.stage()]))
    })
    return reach
  }
}

interface Tracked extends Reach {
  stage(): Stage
  isOver(): boolean
}

function track({ repeat }: Endpoint): Tracked {
  let stage: Stage = 'no'
  /** Of the attempts before. */
  let furthest: Stage = 'no'
  let isOver = false
  return {
    stage: () => stage,
    isOver: () => isOver,
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
      isOver = true
    },
    end() {
      isOver = true
    },
  }
}

/** Of several calls each meaning once, with how many there are of it. */
function describeAll(all: readonly (string | undefined)[]): string | undefined {
  const left = all.filter((meaning) => meaning !== undefined)
  if (left.length <= 1) return left[0]
  const counts = new Map<string, number>()
  for (const meaning of left) counts.set(meaning, (counts.get(meaning) ?? 0) + 1)
  return [...counts].map(([meaning, count]) => `${meaning} (${count} of ${left.length} requests)`).join('; ')
}

function stageOf({ kind, details: { sent = 'no' } }: CliError): Stage {
  if (sent !== 'yes') return sent
  return kind === 'rate-limited' ? 'not-taken' : 'failed'
}
