import { nothingSpent, type Spent } from '../content/spending.ts'
import { CliError } from '../errors.ts'
import { describeJsonError } from '../wire/json/parse.ts'
import type { Ledger } from './ledger.ts'
import { type Id, type LineForm, readForm } from './line-form.ts'
import type { Line } from './lines.ts'
import { hashRequest } from './request-hash.ts'

/** What is asked of a service for one line. */
export interface Call {
  model: string
  body: Uint8Array
}

/** Makes the call of a line. Throws a usage error where none can be made of it. */
export type Prepare<C extends Call> = (form: LineForm, index: number) => C | Promise<C>

/** One line's work. */
export interface Job<C extends Call> {
  /** The line's number, from 1. */
  index: number
  id?: Id
  hash: string
  /** An earlier run's results have its answer. */
  isDone: boolean
  call: C
  /** In this run. */
  spent: Spent
}

export interface BadLine {
  index: number
  problem: string
  /** What may help. */
  hint?: string
}

const notJson = 'jq -R . makes a JSON text of each line of plain text'

/** Makes each line's job, or says why there is none. */
export async function* readJobs<C extends Call>(
  lines: AsyncIterable<Line>,
  prepare: Prepare<C>,
  ledger: Ledger,
): AsyncGenerator<Job<C> | BadLine, void, undefined> {
  ledger.startPass()
  for await (const line of lines) {
    const index = line.number
    if ('problem' in line) {
      yield { index, problem: line.problem }
      continue
    }
    try {
      const form = readForm(line.text)
      const call = await prepare(form, index)
      const named = { ...(form.id === undefined ? {} : { id: form.id }), hash: hashRequest(call) }
      yield { index, ...named, ...ledger.enter(named), call, spent: nothingSpent() }
    } catch (error) {
      yield { index, ...(await describeProblem(error, line.text)) }
    }
  }
}

async function describeProblem(error: unknown, text: string): Promise<Omit<BadLine, 'index'>> {
  if (error instanceof SyntaxError) {
    const where = (await describeJsonError(text)).replace('line 1, ', '')
    return { problem: `it is not JSON: ${where}`, hint: notJson }
  }
  if (!(error instanceof CliError) || error.kind !== 'usage') throw error
  const { problems } = error.details
  return { problem: problems ? `${error.message}: ${problems.slice(0, 3).join('; ')}` : error.message }
}
