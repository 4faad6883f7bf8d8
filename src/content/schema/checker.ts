import { Worker } from 'node:worker_threads'
import type { Context } from '../../context.ts'
import { CliError, tooLate, usage } from '../../errors.ts'
import { notUnderstood } from '../../wire/problem/problem.ts'

/** Checks values by a schema, in a thread of its own, which can be ended whatever it does. */
export interface Checker {
  /** What is wrong with the schema. Throws a `CliError` if that takes too long. */
  checkSchema(): Promise<string[]>
  /** How a JSON text does not fit. Throws a `CliError` if that takes too long. */
  check(text: string): Promise<string[]>
}

/** Milliseconds of the process's time. */
const longestCheck = 10_000

/** In MiB. A thread that needs more is ended, and nothing else. */
const memory = { maxOldGenerationSizeMb: 1024 }

/** From the sources, the built one is used. */
const address = new URL(
  import.meta.url.endsWith('.ts') ? '../../../dist/schema-worker.cjs' : './schema-worker.cjs',
  import.meta.url,
)

interface Thread {
  /** What is wrong with the schema. */
  problems: Promise<string[]>
  ask(text: string): Promise<string[]>
  end(): void
}

/** `deadline` is by the forward clock, Infinity for none. */
export function createChecker(context: Context, schema: string, deadline: number): Checker {
  let thread: Thread | undefined
  let last: Promise<unknown> = Promise.resolve()
  context.cleanups.add(() => thread?.end())

  async function work(what: string, ask: (thread: Thread) => Promise<string[]>): Promise<string[]> {
    thread ??= startThread(schema)
    try {
      return await inTime(context, { what, deadline }, ask(thread))
    } catch (error) {
      // It may be busy for ever. The next check gets a new one.
      thread.end()
      thread = undefined
      throw error
    }
  }

  return {
    checkSchema: () =>
      work('the schema', ({ problems }) => problems).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        // The schema need not be wrong.
        throw error.details.deadline ? tooLate(error.message) : usage(error.message)
      }),
    check(text) {
      const next = last.then(() => work('the answer', ({ ask }) => ask(text)))
      last = next.catch(() => {})
      return next
    },
  }
}

/** Takes one text at a time. */
function startThread(schema: string): Thread {
  const worker = new Worker(address, { workerData: schema, resourceLimits: memory, execArgv: [] })
  let settle: { resolve(problems: string[]): void; reject(error: unknown): void } | undefined
  worker.on('message', (problems: string[]) => settle?.resolve(problems))
  worker.on('error', (error: NodeJS.ErrnoException) => {
    const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY'
    settle?.reject(isFull ? notUnderstood('the check needs more than 1 GiB of memory') : error)
  })
  const reply = () => {
    worker.ref()
    // While nothing is checked, it does not keep the process running.
    return new Promise<string[]>((resolve, reject) => {
      settle = { resolve, reject }
    }).finally(() => worker.unref())
  }
  const problems = reply()
  return {
    problems,
    async ask(text) {
      await problems
      const answer = reply()
      worker.postMessage(text)
      return answer
    },
    end: () => void worker.terminate(),
  }
}

interface CheckLimit {
  what: string
  /** By the forward clock; Infinity for none. */
  deadline: number
}

/** Resolves with `work`. Throws a `CliError` if that takes too long. */
async function inTime<T>(context: Context, limit: CheckLimit, work: Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = whenLate(context, limit, over.signal).then((why) => Promise.reject(why))
  return Promise.race([work, late]).finally(() => over.abort())
}

/** What a busy machine gives to others is not taken from a check. */
async function whenLate(
  { host, timers }: Context,
  { what, deadline }: CheckLimit,
  signal: AbortSignal,
): Promise<CliError> {
  const { usedTime = timers.now } = host
  const end = usedTime() + longestCheck
  for (;;) {
    const left = end - usedTime()
    const toDeadline = deadline - timers.now()
    if (toDeadline <= 0)
      return notUnderstood(`the deadline passed while ${what} was checked`).with({ deadline: true })
    if (left <= 0 || signal.aborted) return notUnderstood(`the check of ${what} took longer than 10 s`)
    await timers.wait(Math.min(left, toDeadline), signal)
  }
}
