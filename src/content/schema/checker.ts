import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Context } from '../../context.ts'
import type { Deadline } from '../../deadline.ts'
import { CliError, unsentDeadlineError, usageError } from '../../errors.ts'
import { createResponseError } from '../../wire/problem/problem.ts'

const maxCheckMs = 10_000

/** V8 ends a thread that exceeds this heap size (MiB). The process continues. */
const memoryLimits = { maxOldGenerationSizeMb: 1024 }

/** Tests run parley from its sources, and use the built worker in `dist`. */
const address = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/schema-worker.cjs' : './schema-worker.cjs',
  import.meta.url,
)

/**
 * Validates values in a worker thread. Patterns of a schema may backtrack for hours, and only a thread can be
 * ended at any time.
 */
export class SchemaChecker {
  readonly #context: Context
  readonly #schema: string
  #thread: Worker | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(context: Context, schema: string) {
    this.#context = context
    this.#schema = schema
    context.cleanups.add(() => void this.#thread?.terminate())
  }

  /** Throws a `CliError` if the check takes too long. */
  checkSchema(): Promise<string[]> {
    this.#thread = this.#start()
    return this.#withTimeLimit('the schema', read(this.#thread)).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      // A timeout does not prove that the schema is wrong.
      throw error.details.deadline ? unsentDeadlineError(error.message) : usageError(error.message)
    })
  }

  /** Throws a `CliError` if the check takes too long. */
  check(text: string): Promise<string[]> {
    const next = this.#last.then(() => this.#withTimeLimit('the answer', this.#request(text)))
    this.#last = next.catch(() => {})
    return next
  }

  async #withTimeLimit(what: string, work: Promise<string[]>): Promise<string[]> {
    const late = ({ limitText }: Deadline) =>
      limitText === undefined
        ? createResponseError(`the deadline passed while ${what} was checked`).with({ deadline: true })
        : createResponseError(limitText)
    const limitText = `the check of ${what} took longer than 10 s`
    try {
      return await this.#context.deadline.narrow(maxCheckMs, limitText).race(work, late)
    } catch (error) {
      // The thread may be busy for hours, so it is ended. The next check starts a new thread.
      void this.#thread?.terminate()
      this.#thread = undefined
      throw error
    }
  }

  /**
   * The first message lists the problems of the schema. The listener for `error` ignores a failure between
   * two checks.
   */
  #start(): Worker {
    const options = { workerData: this.#schema, resourceLimits: memoryLimits, execArgv: [] }
    return new Worker(address, options).on('error', () => {})
  }

  async #request(text: string): Promise<string[]> {
    if (!this.#thread) {
      this.#thread = this.#start()
      await read(this.#thread)
    }
    const thread = this.#thread
    thread.postMessage(text)
    return read(thread)
  }
}

/** An idle thread does not keep the process running. */
async function read(thread: Worker): Promise<string[]> {
  thread.ref()
  try {
    const [problems] = await once(thread, 'message')
    return problems
  } catch (error) {
    const isFull = (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY'
    throw isFull ? createResponseError('the check against the schema needs more than 1 GiB of memory') : error
  } finally {
    thread.unref()
  }
}
