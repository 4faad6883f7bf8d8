import { Worker } from 'node:worker_threads'
import type { Context } from '../../context.ts'
import { CliError, tooLate, usage } from '../../errors.ts'
import { inTime } from '../../timers.ts'
import { notUnderstood } from '../../wire/problem/problem.ts'

/** Milliseconds. */
const longestCheck = 10_000

/** In MiB. A thread that needs more is ended, and nothing else. */
const memory = { maxOldGenerationSizeMb: 1024 }

/** From the sources, the built one is used. */
const address = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/schema-worker.cjs' : './schema-worker.cjs',
  import.meta.url,
)

/** Checks values by a schema, in a thread of its own, which can be ended whatever it does. */
export class Checker {
  readonly #context: Context
  readonly #schema: string
  readonly #deadline: number
  #thread: Thread | undefined
  #last: Promise<unknown> = Promise.resolve()

  /** `deadline` is by the forward clock, Infinity for none. */
  constructor(context: Context, schema: string, deadline: number) {
    this.#context = context
    this.#schema = schema
    this.#deadline = deadline
    context.cleanups.add(() => this.#thread?.end())
  }

  /** Resolves with the problems of the schema. Throws a `CliError` if that takes too long. */
  checkSchema(): Promise<string[]> {
    return this.#work('the schema', ({ problems }) => problems).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      // The schema need not be wrong.
      throw error.details.deadline ? tooLate(error.message) : usage(error.message)
    })
  }

  /** Resolves with the mismatches of a JSON text. Throws a `CliError` if that takes too long. */
  check(text: string): Promise<string[]> {
    const next = this.#last.then(() => this.#work('the answer', (thread) => thread.ask(text)))
    this.#last = next.catch(() => {})
    return next
  }

  async #work(what: string, ask: (thread: Thread) => Promise<string[]>): Promise<string[]> {
    this.#thread ??= new Thread(this.#schema)
    const { timers } = this.#context
    const end = timers.now() + longestCheck
    const time = Math.min(end, this.#deadline)
    const late = () =>
      time === end
        ? notUnderstood(`the check of ${what} took longer than 10 s`)
        : notUnderstood(`the deadline passed while ${what} was checked`).with({ deadline: true })
    try {
      return await inTime(ask(this.#thread), { time, timers }, late)
    } catch (error) {
      // It may be busy for ever. The next check gets a new one.
      this.#thread.end()
      this.#thread = undefined
      throw error
    }
  }
}

/** Takes one text at a time. */
class Thread {
  readonly #worker: Worker
  /** The problems of the schema. */
  readonly problems: Promise<string[]>
  #settle: { resolve(problems: string[]): void; reject(error: unknown): void } | undefined

  constructor(schema: string) {
    this.#worker = new Worker(address, { workerData: schema, resourceLimits: memory, execArgv: [] })
    this.#worker.on('message', (problems: string[]) => this.#settle?.resolve(problems))
    this.#worker.on('error', (error: NodeJS.ErrnoException) => {
      const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
      this.#settle?.reject(isFull ? notUnderstood('the check needs more than 1 GiB of memory') : error)
    })
    this.problems = this.#reply()
  }

  async ask(text: string): Promise<string[]> {
    await this.problems
    const answer = this.#reply()
    this.#worker.postMessage(text)
    return answer
  }

  end(): void {
    void this.#worker.terminate()
  }

  #reply(): Promise<string[]> {
    this.#worker.ref()
    // While nothing is checked, it does not keep the process running.
    return new Promise<string[]>((resolve, reject) => {
      this.#settle = { resolve, reject }
    }).finally(() => this.#worker.unref())
  }
}
