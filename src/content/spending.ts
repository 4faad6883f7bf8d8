import { CliError } from '../errors.ts'
import { addAnswer, type Facts } from '../facts.ts'
import type { AnswerSummary } from '../wire/gateway/answer.ts'
import { usageOf } from './token-usage.ts'

/** What a line of a batch took so far: all of its requests, and all answers to them, those that failed a check too. */
export interface Spent {
  attempts: number
  answers: number
  /** Those of the answers that do not say what they took. */
  unmetered: number
  /** Sums of what the others say, by the names that results have. */
  usage: Record<string, number>
}

export const nothingSpent = (): Spent => ({ attempts: 0, answers: 0, unmetered: 0, usage: {} })

/** Counts an answer as soon as it is known what it took: it is paid for, whatever becomes of it. */
export function countAnswer(spent: Spent, facts: Facts, summary: AnswerSummary): void {
  const usage = usageOf(summary)
  addAnswer(facts, { ...summary, usage })
  spent.answers++
  if (!usage) spent.unmetered++
  for (const [name, count] of Object.entries(usage ?? {}))
    if (typeof count === 'number') spent.usage[name] = (spent.usage[name] ?? 0) + count
}

/** Counts the requests of a call, whatever becomes of it. */
export async function countAttempts<T extends { attempts: number }>(
  spent: Spent,
  call: () => Promise<T>,
): Promise<T> {
  try {
    const answer = await call()
    spent.attempts += answer.attempts
    return answer
  } catch (error) {
    if (error instanceof CliError) spent.attempts += error.details.attempts ?? 0
    throw error
  }
}
