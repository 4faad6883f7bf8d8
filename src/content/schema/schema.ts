import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Context } from '../../context.ts'
import type { Deadline } from '../../deadline.ts'
import {
  CliError,
  createNotSentDeadlineError,
  createUsageErrorFromProblems,
  formatProblemCount,
  usageError,
} from '../../errors.ts'
import { toOneLine } from '../../io/escape.ts'
import type { ResolvedSettings } from '../../settings/resolve.ts'
import {
  createJsonAssignment,
  createListAppendAssignment,
  type JsonAssignment,
} from '../../wire/json/edit.ts'
import { describeJsonError, parseInputJson, tryParseJson } from '../../wire/json/parse.ts'
import { findRepeatedJsonKey } from '../../wire/json/scanner.ts'
import { createResponseError } from '../../wire/problem/problem.ts'
import { buildRequestBody, type MessagePart } from '../body.ts'

export interface SchemaSource {
  name: string
  text: string
}

/**
 * Throws a usage error if `source` is not a valid schema. `retries` is `undefined` if the command cannot
 * repeat the request.
 */
export async function createAnswerSchema(
  context: Context,
  settings: ResolvedSettings,
  source: SchemaSource,
  retries?: number,
): Promise<AnswerSchema> {
  const name = `--schema ${source.name}`
  parseInputJson(source.text, name)
  const schema = new AnswerSchema(context, settings, source, retries)
  const problems = await schema.checkSchema()
  if (problems.length > 0) throw createUsageErrorFromProblems(name, problems)
  return schema
}

/** The next request for an answer. `retries` is the number of answers that did not match. */
export interface AnswerRequest {
  body: Uint8Array
  retries: number
}

/**
 * Checks answers in a worker thread. A pattern of the schema may backtrack for hours, and only a thread can
 * be ended at any time.
 */
export class AnswerSchema {
  /** Adds the schema to the prompt. Empty with `--schema-via native`. */
  readonly parts: MessagePart[] = []
  /** Adds the schema to the body. Empty with `--schema-via prompt`. */
  readonly assignments: JsonAssignment[] = []
  readonly instructions: string
  readonly #context: Context
  readonly #settings: ResolvedSettings['values']
  readonly #source: SchemaSource
  readonly #retries: number | undefined
  #thread: Worker | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(context: Context, { values }: ResolvedSettings, source: SchemaSource, retries?: number) {
    const text = source.text.trim()
    this.instructions = `Answer with nothing but JSON that fits this JSON Schema:\n${text}`
    if (values.schemaVia === 'prompt') this.parts.push({ text: this.instructions })
    else
      this.assignments.push(
        createJsonAssignment(['generationConfig', 'responseMimeType'], '"application/json"'),
        createJsonAssignment(['generationConfig', 'responseJsonSchema'], text),
      )
    context.cleanups.add(() => void this.#thread?.terminate())
    this.#context = context
    this.#settings = values
    this.#source = source
    this.#retries = retries
  }

  /**
   * Returns the JSON of the answer. `cut` describes how the answer was cut, for the message of a mismatch. Throws
   * a `CliError` if the answer does not match, or if the check takes too long.
   */
  async check(text: string, cut: string | undefined): Promise<string> {
    const json = unwrapJson(text)
    const why = `the answer does not match ${this.#source.name}`
    if (tryParseJson(json) === undefined)
      throw this.#mismatch(text, cut, `${why}: it is not JSON: ${describeJsonError(json)}`)
    // Two parsers may use different values of a repeated key. The user's program might use a value that was
    // not checked, so parley rejects the answer.
    const repeated = findRepeatedJsonKey(json)
    if (repeated !== undefined) {
      const key = toOneLine(JSON.stringify(repeated), 200)
      throw this.#mismatch(text, cut, `${why}: the key ${key} appears twice in one object`)
    }
    const mismatches = await this.#findMismatches(json).catch((error: unknown) => {
      throw error instanceof CliError ? error.with({ answer: text }) : error
    })
    if (mismatches.length === 0) return json
    const isOne = mismatches.length === 1
    const what = isOne ? mismatches[0] : formatProblemCount(mismatches)
    throw this.#mismatch(text, cut, `${why}: ${what}`, isOne ? undefined : mismatches)
  }

  #mismatch(text: string, cut: string | undefined, why: string, problems?: string[]): CliError {
    const fields =
      this.#settings.schemaVia === 'prompt'
        ? '; --schema-via native sends the schema as a field of the request, if the model supports it'
        : ''
    const hint = this.#retries === 0 ? [`--schema-retries N requests another answer${fields}`] : []
    const begins = text.trim() === '' ? [] : [`the answer begins: ${toOneLine(text, 200)}`]
    return new CliError('response', cut === undefined ? why : `${cut}; ${why}`, {
      sent: 'yes',
      isMismatch: true,
      problems,
      consequence: [...begins, ...hint].join('\n') || undefined,
      answer: text,
    })
  }

  /**
   * Requests answers until one matches or no retry is left. Adds each mismatching answer and its problems to the
   * conversation of `request`. After another failure, a second call continues with the same `request`.
   */
  async retryUntilMatching<T>(request: AnswerRequest, send: (body: Uint8Array) => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await send(request.body)
      } catch (error) {
        const isMismatch = error instanceof CliError && error.details.isMismatch
        if (!isMismatch || request.retries === (this.#retries ?? 0)) throw error
        const { message, details } = error
        const first = details.problems === undefined ? '' : `, the first one: ${details.problems[0]}`
        this.#context.messages.note(`${message}${first}; requesting another answer`)
        request.body = Buffer.from(this.#withTurns(request.body, error))
        request.retries++
      }
    }
  }

  #withTurns(body: Uint8Array, { message, details }: CliError): string {
    const { answer: text = '', problems = [message] } = details
    const wrong = `This is wrong:\n${problems.join('\n')}\nAnswer again, with nothing but JSON that fits.`
    const turns = [
      ...(text.trim() === '' ? [] : [{ role: this.#settings.answerRole, parts: [{ text }] }]),
      { role: 'user', parts: [{ text: wrong }] },
    ]
    return buildRequestBody({
      given: { text: Buffer.from(body).toString(), name: 'the body' },
      turn: [],
      assignments: turns.map((turn) => createListAppendAssignment(['contents'], JSON.stringify(turn))),
    })
  }

  checkSchema(): Promise<string[]> {
    this.#thread = this.#start()
    return this.#withTimeLimit('the schema', read(this.#thread)).catch((error: unknown) => {
      if (!(error instanceof CliError)) throw error
      // The schema may be valid but slow to check, so a passed deadline is not a usage error.
      throw error.details.deadline ? createNotSentDeadlineError(error.message) : usageError(error.message)
    })
  }

  #findMismatches(text: string): Promise<string[]> {
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
      // The thread may be busy for hours, so parley terminates it. The next check starts a new thread.
      void this.#thread?.terminate()
      this.#thread = undefined
      throw error
    }
  }

  /**
   * The first message of the thread has the problems of the schema. Without a listener for `error`, a failure
   * between two checks would end the process.
   */
  #start(): Worker {
    const options = { workerData: this.#source.text, resourceLimits: memoryLimits, execArgv: [] }
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

function unwrapJson(answer: string): string {
  const text = answer.trim()
  const [opening, fence = ''] = /^(`{3,}|~{3,})[^`\r\n]*\r?\n/.exec(text) ?? []
  if (opening === undefined) return text
  const end = text.lastIndexOf('\n')
  const closing = text.slice(end + 1).trim()
  const isClosed = closing.startsWith(fence) && new Set(closing).size === 1
  return isClosed && end >= opening.length - 1 ? text.slice(opening.length, end).trim() : text
}

const maxCheckMs = 10_000

/** V8 ends only the thread that exceeds this heap size (MiB), not the process. */
const memoryLimits = { maxOldGenerationSizeMb: 1024 }

/** Tests run parley from its sources, but start the worker that the build wrote. */
const folder = import.meta.url.endsWith('.ts') ? '../../../dist' : '.'
const address = new URL(`${folder}/schema-worker.cjs`, import.meta.url)

/** Waits for the next message. Only this wait keeps the process alive, so an idle thread does not. */
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
