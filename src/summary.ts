/** In whole minor units, such as cents. */
export interface ListCost {
  amount: bigint
  currency: string
}

/** What a run has come to, as its rooms add to it: `--report` shows it. */
export interface Summary {
  command: string | undefined
  /** Of all requests. */
  attempts: number
  /** The model that was asked, then the one that answered; `undefined` too if there were several. */
  model: string | undefined
  stopReason: string | undefined
  /** The answer's; `undefined` too if there were several. */
  id: string | undefined
  /** The last one's. */
  requestId: string | undefined
  session: string | undefined
  /** The command that goes on with the work if a signal ends it now, without `parley`. */
  resume: string[] | undefined
  /** Sums of the answers that say it. */
  usage: Map<string, number>
  /** What a run's turn cost, and what its session has used and cost so far, if the service tells it. */
  cost: ListCost | undefined
  sessionUsage: Map<string, number> | undefined
  sessionCost: ListCost | undefined
  /** Files that results were written to; `undefined` if they are too many to be kept. */
  files: string[] | undefined
  /** The kind of each that is an image, whatever its name says. */
  fileTypes: Map<string, string>
  /** How many of many ended how. */
  counts: object | undefined
}

export const createSummary = (): Summary => ({
  command: undefined,
  attempts: 0,
  model: undefined,
  stopReason: undefined,
  id: undefined,
  requestId: undefined,
  session: undefined,
  resume: undefined,
  usage: new Map(),
  cost: undefined,
  sessionUsage: undefined,
  sessionCost: undefined,
  files: [],
  fileTypes: new Map(),
  counts: undefined,
})

interface Answered {
  id?: string
  model?: string
  stopReason?: string
  usage?: object
  /** All that it took, if no more is known. */
  tokens?: number
}

/** Adds what an answer says of itself. */
export function addAnswer(summary: Summary, { id, model, stopReason, usage, tokens }: Answered): void {
  // Of many answers only the sums are shown.
  const isOneOfMany = summary.counts !== undefined
  summary.model = isOneOfMany ? undefined : (model ?? summary.model)
  summary.id = isOneOfMany ? undefined : id
  summary.stopReason = isOneOfMany ? undefined : stopReason
  for (const [name, count] of Object.entries(usage ?? { totalTokens: tokens }))
    if (typeof count === 'number') summary.usage.set(name, (summary.usage.get(name) ?? 0) + count)
}
