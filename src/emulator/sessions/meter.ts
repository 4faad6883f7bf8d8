import type { SessionEvent } from '../../wire/sessions/session-event.ts'
import type { Budget } from '../../wire/sessions/session-requests.ts'
import { tokensIn } from '../tokens.ts'

/** What a session has used, in tokens and milliseconds. */
export interface MeterState {
  input: number
  output: number
  cacheRead: number
  active: number
  /** Of the model request that is under way; `context` is all that the one before it had read and written. */
  request: { context: number; input: number; output: number }
  budget?: Budget | undefined
}

/** What a token costs, in hundredths of a cent: enough for one turn to show in whole cents. */
const [inputPrice, outputPrice, cachedPrice] = [5, 25, 1]

export const currency = 'USD'

/** Counts what a session uses, by its events. */
export class Meter {
  readonly #state: MeterState
  #workBegan: number | undefined

  constructor(state: MeterState = newState()) {
    this.#state = state
  }

  get state(): MeterState {
    return this.#state
  }

  /** What the agent makes is written by a model request. Anything else that has text is read by the next one. */
  add(event: SessionEvent): void {
    const { type } = event
    const { request } = this.#state
    if (type === 'session.status_running') this.#workBegan ??= Date.now()
    if (/^agent\.(message|(mcp_|custom_)?tool_use)$/.test(type)) request.output += tokensOf(event)
    else if (/^(user|system)\.|^agent\./.test(type)) request.input += tokensOf(event)
  }

  /** Ends the model request that is under way. Returns its usage, or `undefined` if it has written nothing. */
  endRequest(): object | undefined {
    const { input, output, context } = this.#state.request
    if (output === 0) return undefined
    this.#state.input += input
    this.#state.output += output
    this.#state.cacheRead += context
    this.#state.request = { context: context + input + output, input: 0, output: 0 }
    return {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: context,
      cache_creation_input_tokens: 0,
    }
  }

  /** The session comes to rest. */
  endWork(): void {
    this.#state.active += this.#workBegan === undefined ? 0 : Math.max(0, Date.now() - this.#workBegan)
    this.#workBegan = undefined
  }

  /** Of the whole session so far, as a service tells it (public clients, 9). */
  get usage(): object {
    const { input, output, cacheRead, active } = this.#state
    return {
      input_tokens: input,
      output_tokens: output,
      cache_read_input_tokens: cacheRead,
      cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
      active_seconds: active / 1000,
      list_cost: { amount: String(this.#cents), currency },
    }
  }

  get budget(): Budget | undefined {
    return this.#state.budget
  }

  set budget(budget: Budget | undefined) {
    this.#state.budget = budget
  }

  /** Whether the budget is used up. */
  get isSpent(): boolean {
    const { budget } = this.#state
    return budget !== undefined && BigInt(this.#cents) >= BigInt(budget.max_list_cost.amount)
  }

  get #cents(): number {
    const { input, output, cacheRead } = this.#state
    return Math.ceil((input * inputPrice + output * outputPrice + cacheRead * cachedPrice) / 100)
  }
}

const newState = (): MeterState => ({
  input: 0,
  output: 0,
  cacheRead: 0,
  active: 0,
  request: { context: 0, input: 0, output: 0 },
})

/** Of all that a model would read of an event. */
function tokensOf({ content, input, name, description, deny_message: why }: SessionEvent): number {
  const values = [content, input, name, description, why].filter((value) => value != null)
  return tokensIn(
    values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value))).join(' '),
  )
}
